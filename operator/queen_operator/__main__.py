"""``python -m queen_operator`` is the command ``queen-operator``."""

from queen_operator.control.main import main

main()
