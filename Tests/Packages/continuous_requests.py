"""Clients that send requests while a test restarts or replaces the gateway."""

import threading
import time

import requests

from processes import wait_for


class ContinuousRequests:
    """Three clients that send requests until the end of the block. `answers` holds the status of each request, or its
    error."""

    def __init__(self, send):
        """`send` sends one request and returns the status."""
        self.answers, self._send, self._over = [], send, threading.Event()
        self._clients = [threading.Thread(target=self._ask) for _ in range(3)]

    def _ask(self):
        while not self._over.is_set():
            try:
                self.answers.append(self._send())
            except requests.RequestException as error:
                self.answers.append(repr(error))
            time.sleep(0.01)

    def wait_for_more(self):
        count = len(self.answers)
        wait_for(lambda: len(self.answers) > count + 6, "answers")

    def __enter__(self):
        for client in self._clients:
            client.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for client in self._clients:
            client.join(70)
