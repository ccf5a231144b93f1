"""Pure policy: which GPU class a job needs, where it waits, and who serves that queue.

::

    classes.py       known GPU classes, and which GPU may serve which class
    fit.py           GPU memory that one job needs
    placement.py     the smallest class that fits
    queues.py        the one rule for queue names
    subscription.py  the queues that one GPU's worker serves, in order
    quotas.py        how many tickets may be out per queue
    reroute.py       queues that nobody serves any more, and where their jobs go

No clock, no random source, no socket: whatever changes is an argument.
"""
