"""`peerveil flows`: runs given flows through the network model alone."""

from __future__ import annotations

import argparse
import json

from scenarios.cli.commands.network_model.flows_input import read_case


def run(args: argparse.Namespace) -> int:
    """Prints the arrival time of each flow, in the order given."""
    print(json.dumps({"arrived_s": read_case(args.file).arrived_s().tolist()}))
    return 0
