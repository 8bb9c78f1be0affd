"""The stationary law with a finite number of servers."""
