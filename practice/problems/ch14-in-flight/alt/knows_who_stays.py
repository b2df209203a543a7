# Writes down who is in the passes behind this one, and asks nobody else.
class Scheduler:
    def _take_over(self):
        launch, *behind = self._launches
        stay = [request.uid for other in behind for request in other.requests]
        error = None
        try:
            tokens, logprobs = launch.output.result().read()
        except Exception as caught:
            error = caught
        if error is None:
            found = {}
            for request, token in zip(launch.sampled, tokens.tolist(), strict=True):
                found[request.uid] = token
            self._record_end(launch, "result", tokens=found)
            for row, request in enumerate(launch.sampled):
                if request.finish_reason is not None:
                    continue
                self._accept(request, tokens[row : row + 1], logprobs[row])
        else:
            self._record_end(launch, "failure", error=repr(error))
            for request in launch.requests:
                self._end(request, "error", error)
        self._launches.popleft()
        gone = [one for one in launch.requests if one.finish_reason and one.uid not in stay]
        for request in gone:
            self._release(request, failed=error is not None)
