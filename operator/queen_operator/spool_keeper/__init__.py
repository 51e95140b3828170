"""The spool keeper: holds the lock on a broker's spool directory and tells what is in it.

Standard library only, and little of that: the keeper runs beside every broker, and its first process is all that
keeps a second broker off the same files. So it imports nothing that it can do without (`dataclasses`, `typing`,
`pathlib`, `json`, `re` and `argparse` each cost 1 to 3 MiB), and knows nothing of the rest of the operator.
"""
