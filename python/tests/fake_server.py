"""A completions server that knows one tactic: what vLLM, SGLang and llama.cpp answer, without a
model. `fake_server.py PORT`.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Fake(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("lora_adapter"):
            return self.answer({"success": True})
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "text": "ax-1",
            "logprobs": {"tokens": ["a"], "token_logprobs": [-0.25]},
        }
        if "chat" in self.path:
            content = [{"token": "a", "logprob": -0.25, "bytes": [97]}]
            choice.update(
                message={"role": "assistant", "content": "ax-1"}, logprobs={"content": content}
            )
        return self.answer(
            {"choices": [{**choice, "index": index} for index in range(body.get("n", 1))]}
        )

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Fake).serve_forever()
