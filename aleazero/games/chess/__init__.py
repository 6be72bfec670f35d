"""Chess: rules on bits, what networks see, how people and engines write it, and proved mates."""
