"""What draws: styles, marks, labels and legends; matplotlib is imported here alone."""
