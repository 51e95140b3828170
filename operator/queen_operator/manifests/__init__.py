"""Pure: what the user wrote -> the child objects. Templates hold the shape, Python holds the decisions.

No clock, randomness, environment or logging: the same context gives the same objects, to the order of env.
"""
