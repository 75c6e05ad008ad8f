"""A GitHub of our own on loopback, held to GitHub's description of itself."""
