"""The typed form of a study's file."""
