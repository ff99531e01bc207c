"""Runs a module's tests, one line each, in the Test Anything Protocol."""

import sys
import time
import unittest

from . import imported, inspected


def _name(test):
    return test.id().split(".", 1)[-1]


def _look_at_traces(test):
    imported.check(test, inspected.check(inspected.noted()))


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self._began = 0.0
        self._failed = 0  # the number of the last test that did

    def startTest(self, test):
        super().startTest(test)
        # The first to be added is the last to be called.
        test.addCleanup(_look_at_traces, test)
        self._began = time.monotonic()

    def _line(self, ok, test, note=""):
        name = _name(test).replace("#", "")
        took = time.monotonic() - self._began
        print(f"{'' if ok else 'not '}ok {self.testsRun} - {name} "
              f"({took:.2f} s){note}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        # A cleanup that fails reports later, as an error of the same test.
        if not any(test is t for t, _ in self.errors + self.failures):
            self._line(True, test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line(True, test, f" # SKIP {reason}")

    def _bad(self, test, trace):
        print(trace, file=sys.stderr, flush=True)
        # What fails again while it is cleaned up has one line all the same.
        if self.testsRun != self._failed:
            self._line(False, test)
        self._failed = self.testsRun

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._bad(test, self._exc_info_to_string(err, test))

    def addError(self, test, err):
        super().addError(test, err)
        self._bad(test, self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.failures.append((test, ""))
            self._bad(subtest, self._exc_info_to_string(err, test))


def slow(case):
    """A class of tests that take a minute each: --slow runs them."""
    case.takes_minutes = True
    return case


def main():
    """The tests of __main__; arguments pick some by a part of their name.

    Those of a slow class run with --slow as the first argument, and only they.
    --list instead of parts of names prints their names.
    """
    suite = unittest.defaultTestLoader.loadTestsFromModule(
        sys.modules["__main__"])
    tests = []

    def flatten(part):
        for item in part:
            if isinstance(item, unittest.TestSuite):
                flatten(item)
            else:
                tests.append(item)

    flatten(suite)
    wanted = sys.argv[1:]
    minutes = wanted[:1] == ["--slow"]
    tests = [t for t in tests
             if getattr(t, "takes_minutes", False) == minutes]
    wanted = wanted[minutes:]
    if wanted == ["--list"]:
        print(*map(_name, tests), sep="\n")
        return 0
    if wanted:
        whole = [t for t in tests if _name(t) in wanted]
        tests = whole or [
            t for t in tests if any(w in _name(t) for w in wanted)]
    print(f"1..{len(tests)}", flush=True)
    result = TapResult()
    for test in tests:
        test(result)
    return 0 if result.wasSuccessful() else 1
