"""What the end-to-end and conformance tests stand on.

The real daemon on private sockets, and a second implementation of the
protocol's client side, written from the reference documents and not from the
project's own code, so that the two can disagree.
"""
