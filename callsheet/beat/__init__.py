"""The controllers, as plain objects, and the thin schedule that drives them."""
