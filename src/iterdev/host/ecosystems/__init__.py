"""Where the packages of each ecosystem are, and how its ranges are read: always by the ecosystem's own tools."""
