"""Uses the paho client with MQTT 5 against the broker at the given port and prints what it saw as one JSON object."""

import json
import queue
import sys

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

PORT = int(sys.argv[1])
WAIT_S = 25


def properties(packet, **values):
    result = Properties(packet)
    for name, value in values.items():
        setattr(result, name, value)
    return result


def open_client(client_id):
    """Connects with a session that outlives the connection; returns the client, its messages and the CONNACK."""
    client = mqtt.Client(client_id, protocol=mqtt.MQTTv5)
    messages, answers = queue.Queue(), queue.Queue()
    client.on_message = lambda _client, _data, message: messages.put(message)
    client.on_connect = lambda _client, _data, flags, reason, _properties: answers.put((flags["session present"], str(reason)))
    client.on_subscribe = lambda _client, _data, _mid, reasons, _properties: answers.put([str(reason) for reason in reasons])
    wishes = properties(PacketTypes.CONNECT, SessionExpiryInterval=600, ReceiveMaximum=5)
    client.connect("127.0.0.1", PORT, clean_start=False, properties=wishes)
    client.loop_start()
    return client, messages, answers


def close(client):
    client.disconnect()
    client.loop_stop()


seen = {}
keeper, messages, answers = open_client("paho-keeper")
seen["first"] = answers.get(timeout=WAIT_S)
keeper.subscribe(
    "claimed/#",
    options=SubscribeOptions(qos=2),
    properties=properties(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=9),
)
seen["granted"] = answers.get(timeout=WAIT_S)
close(keeper)

publisher, _, connected = open_client("paho-publisher")
connected.get(timeout=WAIT_S)
for n in range(30):
    sent = properties(PacketTypes.PUBLISH, UserProperty=[("n", str(n))], ContentType="text/plain", MessageExpiryInterval=500)
    publisher.publish("claimed/paho", str(n), qos=1 + n % 2, properties=sent).wait_for_publish(WAIT_S)
close(publisher)

keeper, messages, answers = open_client("paho-keeper")
seen["again"] = answers.get(timeout=WAIT_S)
received = [messages.get(timeout=WAIT_S) for _ in range(30)]
close(keeper)
# paho hands a message of QoS 2 over when it is released, so that order holds within a level.
seen["one"] = [message.payload.decode() for message in received if message.qos == 1]
seen["two"] = [message.payload.decode() for message in received if message.qos == 2]
last = next(message.properties for message in received if message.payload == b"29")
seen["last"] = [last.UserProperty, last.ContentType, last.SubscriptionIdentifier]
print(json.dumps(seen))
