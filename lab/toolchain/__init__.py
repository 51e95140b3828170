"""What the laboratory is made of: Debian packages, compiled programs, Python environments; made once, cached."""
