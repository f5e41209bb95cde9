"""What is kept on disk: the journal, and the files of a session folder that are made from it."""
