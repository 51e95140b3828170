"""TLS to PostgreSQL the way the broker does it, so that the operator's answer is the broker's answer."""

import ssl
from functools import lru_cache

import certifi


def context_for(*, verify: bool, ca_pem: str | None) -> ssl.SSLContext:
    """Return the TLS settings of one connection.

    As in the broker: certificates given replace the public ones and are always verified against, whatever ``verify``
    says; they may be written with ``\\n`` for line ends; the public ones are Mozilla's, not those of the machine; and
    a server is known by its subject alternative names, not by its common name.

    Raises ValueError with a sentence when ``ca_pem`` holds no certificate.
    """
    if ca_pem is not None:
        context = _demanding()
        try:
            context.load_verify_locations(cadata=ca_pem.replace("\\n", "\n"))
        except (ssl.SSLError, ValueError) as problem:
            raise ValueError("the CA certificates given for PostgreSQL are not PEM certificates") from problem
        return context
    return _public() if verify else _blind()


def _demanding() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.hostname_checks_common_name = False
    return context


@lru_cache(maxsize=1)  # reading the public certificates takes some 20 ms
def _public() -> ssl.SSLContext:
    context = _demanding()
    context.load_verify_locations(cafile=certifi.where())
    return context


def _blind() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
