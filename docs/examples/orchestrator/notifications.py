#!/usr/bin/env python3
"""Prints the notifications of one entity, and the notices of failed streams, from RabbitMQ.

An example of an application of the orchestrator. It requires pika (Debian: python3-pika). It subscribes without an
address of its own, goes on after each cut of RabbitMQ or of the orchestrator, and recognises repeats by their id.

  notifications.py --entity urn:ngsi-ld:StreamObservation:a:t
  notifications.py --entity urn:ngsi-ld:StreamObservation:a:t --durable
  notifications.py --entity urn:ngsi-ld:StreamObservation:a:t --unsubscribe
"""
import argparse
import collections
import json
import random
import sys
import time
import urllib.parse
import urllib.request

import pika
import pika.exceptions

PAUSE_MAX = 10  # seconds between two attempts, at most
REFRESH = 30  # seconds after which it subscribes again, in case the orchestrator lost its data
REMEMBERED = 10_000  # ids by which repeats are recognised


def arguments():
    parser = argparse.ArgumentParser(description="Prints notifications and notices of failed streams.")
    parser.add_argument("--orchestrator", default="http://localhost:3001")
    parser.add_argument("--amqp", default="amqp://guest:guest@localhost:5672/%2F")
    parser.add_argument("--client", default="python-example", help="name of this application")
    parser.add_argument("--entity", required=True, help="id of the entity")
    parser.add_argument("--type", default="http://purl.org/iot/ontology/iot-stream#StreamObservation")
    parser.add_argument("--watch", action="append", help="name of an attribute; all attributes if left out")
    parser.add_argument("--durable", action="store_true", help="let a queue collect while this program is away")
    parser.add_argument("--unsubscribe", action="store_true", help="end the subscription, and exit")
    return parser.parse_args()


def report(text):
    print(text, file=sys.stderr, flush=True)


def subscribe(given):
    """Returns the id of the subscription, and its queue if it has one. Repeating it changes nothing."""
    body = {"type": "Subscription", "entities": [{"id": given.entity, "type": given.type}]}
    if given.watch:
        body["watchedAttributes"] = given.watch
    if given.durable:
        durable = {"key": "selvedge:delivery", "value": "durable"}
        body["notification"] = {"endpoint": {"notifierInfo": [durable]}}
    headers = {"Content-Type": "application/ld+json", "Selvedge-Client": given.client}
    url = given.orchestrator + "/ngsi-ld/v1/subscriptions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode(), answer.headers.get("Selvedge-Queue")


def unsubscribe(given, name):
    url = given.orchestrator + "/ngsi-ld/v1/subscriptions/" + urllib.parse.quote(name, safe="")
    headers = {"Selvedge-Client": given.client}
    urllib.request.urlopen(urllib.request.Request(url, headers=headers, method="DELETE"), timeout=20).close()


def handle(message):
    """What the application does with a message."""
    if message["type"] in ("StreamFailure", "StreamRecovery"):
        print("notice " + json.dumps(message), flush=True)
    else:
        print("notification " + json.dumps(message), flush=True)


class Seen:
    """The ids of the last messages."""

    def __init__(self):
        self.ids = collections.OrderedDict()

    def __contains__(self, name):
        return name in self.ids

    def add(self, name):
        self.ids[name] = None
        if len(self.ids) > REMEMBERED:
            self.ids.popitem(last=False)


def consume(given, target, seen):
    """Consumes until the connection is cut, or the subscription has another id or queue."""
    name, queue = target
    connection = pika.BlockingConnection(pika.URLParameters(given.amqp))
    try:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=100)
        if queue is None:
            # A restart of RabbitMQ deletes the exchange; it may not be declared again yet.
            channel.exchange_declare(name, exchange_type="fanout", durable=False, auto_delete=False)
            queue = channel.queue_declare("", exclusive=True).method.queue
            channel.queue_bind(queue, name)
        report("receiving " + name)
        refreshed = time.monotonic()
        for method, _, body in channel.consume(queue, inactivity_timeout=1):
            if method is not None:
                message = json.loads(body)
                if message["id"] not in seen:
                    handle(message)
                    seen.add(message["id"])
                channel.basic_ack(method.delivery_tag)
            if time.monotonic() - refreshed > REFRESH:
                refreshed = time.monotonic()
                try:
                    now = subscribe(given)
                except OSError as error:
                    report(f"orchestrator: {error}")
                    continue
                if now != target:
                    return
    finally:
        if connection.is_open:
            connection.close()


def run(given):
    seen = Seen()
    target = None
    failures = 0
    while True:
        started = time.monotonic()
        try:
            target = subscribe(given)
        except OSError as error:  # urllib.error.URLError is one
            report(f"orchestrator: {error}")
        try:
            if target is not None:
                consume(given, target, seen)
        except (pika.exceptions.AMQPError, OSError) as error:
            report(f"RabbitMQ: {error or type(error).__name__}")
        failures = 0 if time.monotonic() - started > PAUSE_MAX else failures + 1
        time.sleep(min(0.25 * 2**failures, PAUSE_MAX) * random.uniform(0.5, 1))


def main():
    given = arguments()
    try:
        if given.unsubscribe:
            unsubscribe(given, subscribe(given)[0])
        else:
            run(given)
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
