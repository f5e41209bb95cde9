"""What can be done with the issue tracker: the issues of a repository, their solutions, and queues of them."""
