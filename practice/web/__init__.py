"""The judge in the browser: the core and the store of `judge.py` behind a local web server.

    serve       the command: binds, prints the address, ends cleanly
    app, api    the parts put together; the pages; the routes, which are thin
    stream      a job's events, to its verdict
    answers     how answers are written, `errors` how refusals are
    security    who may ask (Host, Origin, size), and what a page may do (CSP)
    problems    what the page shows of the problems; `statement` makes their HTML
    desk        jobs from the post to the verdict, and across a server's death
    queue       whose turn it is
    work        one job, judged in warm boxes
    records     the store as the server holds it, and the sign that the server lives

The command line imports `serve` alone, and only when it is asked for.
"""
