"""Studies: config -> points -> units -> store -> cube -> fits.

``config``, ``validation`` and ``sweep`` read and check a study's file, ``points`` gives every
point its identity and seed, ``methods`` computes them, ``fingerprint``, ``records`` and ``store``
keep them, ``compute`` does one unit, ``cube`` puts all results side by side, ``fits`` fits rates.
"""
