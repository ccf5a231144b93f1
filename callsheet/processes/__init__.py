"""Child processes that never outlive their parent, and locks that say who holds a folder."""

from callsheet.processes.child import Child, Restart, RestartWhen
from callsheet.processes.locks import FileLock
from callsheet.processes.output import Printer
from callsheet.processes.supervisor import Supervisor

__all__ = ["Child", "FileLock", "Printer", "Restart", "RestartWhen", "Supervisor"]
