//! `llms.txt`: what assistants read first about rackmath. <https://llmstxt.org>

use rackmath::ask::Question;
use std::fmt::Write as _;

pub fn text() -> String {
    let mut out = String::from(
        "# rackmath\n\n> The maths of how large language models are trained and served: speed, memory, cost, layouts and plans, worked out from \
         published figures, each with its source and its interval.\n\nOne engine with many faces, the same bytes from each: `rackmath QUESTION --json` in a \
         terminal, `POST /api/QUESTION` of `rackmath web`, and tools of `rackmath mcp`. `rackmath schema QUESTION` prints what goes \
         in and what comes out. Values are typed with units (`--isl 4k`, `--tpot 30ms`, `--on 8xh200`); unknown names are refused with the nearest valid one; \
         what does not fit or does not run is an answer, not an error.\n\n## Documents\n\n- [README](README.md): what it answers, how well, how fast\n\
         - [ARCHITECTURE](ARCHITECTURE.md): where everything is\n\n## Questions\n\n",
    );
    for question in Question::ALL {
        let _ = writeln!(out, "- `{}`: {}", question.name(), question.about());
        for example in question.examples().take(1) {
            let _ = writeln!(out, "  - `{}`", example.split("   ").next().unwrap_or(example).trim());
        }
    }
    out.push_str(
        "\n## Tools\n\n- `sweep`: one question over axes of its fields, a row for every point\n  - `rackmath sweep estimate llama-3.1-70b --on 8xh200 --over \
         concurrency=1..512 --over tp=1,2,4,8 -o rows.csv`\n- `merge`: shards of a plan or of a sweep joined to the bytes of the whole\n- `schema`: what goes into a question and what comes out, as JSON Schema\n\
         - `mcp`: the questions as tools of the Model Context Protocol, over standard input and output\n",
    );
    out
}
