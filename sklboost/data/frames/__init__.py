"""Tables of any library, read column by column: a small reader for each, all alike to the rest."""
