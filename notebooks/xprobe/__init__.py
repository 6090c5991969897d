"""X-Probe's pipeline: word spaces, small sentence encoders, probes on what they give."""
