"""Settings of Ray's, before it is imported: several nodes share one machine here, perhaps a busy
one.
"""

import os

for name, value in {
    # A node has the time it needs to come up,
    "RAY_raylet_start_wait_time_s": "300",
    # its workers are not nicer than everybody else,
    "RAY_worker_niceness": "0",
    # and a killed one is missed within seconds.
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "3",
    "RAY_USAGE_STATS_ENABLED": "0",
}.items():
    os.environ.setdefault(name, value)
