//! Every format, what is refused, and text that is neither.

use super::*;
use proptest::prelude::*;

const MOONCAKE: &str = "{\"timestamp\": 2000, \"input_length\": 1024, \"output_length\": 5, \"hash_ids\": [1, 2]}\n\
                        {\"timestamp\": 500, \"input_length\": 600, \"output_length\": 7, \"hash_ids\": [1, 3]}\n";
const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 23:59:59.5000000,374,44\r\n\
                     2023-11-17 00:00:01.7500000,396,109\r\n";
const BURST: &str = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n\
                     45.5,GPT-4,1087,230,1317,\"API log, paid\"\n";
const PLAIN: &str = "time_s,input_tokens,output_tokens,cache_read_tokens\n3,100,10,80\n";
const UNTIMED: &str = "prompt_tokens,completion_tokens,user\n100,10,ann\n300,20,bob\n";

#[test]
fn both_formats_are_read_and_start_at_zero() {
    let t = read("t.jsonl", MOONCAKE).unwrap();
    assert_eq!((t.requests.len(), t.requests[0].blocks[1], t.span().get()), (2, 3, 1.5));
    assert_eq!((t.input().get(), t.output().get(), t.has_blocks()), (1624.0, 12.0, true));
    let t = read("t.csv", PLAIN).unwrap();
    assert_eq!(t.requests[0].logged.unwrap().read.get(), 80.0);
}

#[test]
fn published_tables_are_told_apart_by_their_columns() {
    let t = read("a.csv", AZURE).unwrap();
    assert_eq!((t.format, t.input().get(), t.output().get(), t.span().get()), (TraceFormat::Azure, 770.0, 153.0, 2.25));
    let t = read("b.csv", BURST).unwrap();
    assert_eq!(
        (t.format, t.input().get(), t.output().get(), t.span().get()),
        (TraceFormat::BurstGpt, 1559.0, 248.0, 40.5)
    );
    let t = read("c.csv", "timestamp_ms,isl,osl\n1500,10,20\n500,1,2\n").unwrap();
    assert_eq!((t.format, t.span().get(), t.requests[0].input.get()), (TraceFormat::Csv, 1.0, 1.0));
}

#[test]
fn plain_words_are_columns_where_no_other_says_tokens() {
    for head in ["time,prompt,answer", "arrival,question,reply", "ts,tokens_in,tokens_out", "Date,Request,Response"] {
        let t = read("p.csv", &format!("{head}\n5,100,10\n7,200,20\n")).unwrap();
        assert_eq!((t.span().get(), t.input().get(), t.output().get()), (2.0, 300.0, 30.0), "{head}");
        assert_eq!(t.columns.join(","), head.to_lowercase());
    }
    // The text of a prompt is not its length.
    let t = read("p.csv", "time_s,prompt,prompt_tokens,response,completion_tokens\n0,hello,5,hi,3\n").unwrap();
    assert_eq!((t.input().get(), t.columns[1].as_str()), (5.0, "prompt_tokens"));
    let text = read("p.csv", "time_s,prompt,answer\n0,hello,hi\n").unwrap_err().to_string();
    assert!(text.contains("line 2 prompt = hello"), "{text}");
    assert_eq!(read("t.jsonl", MOONCAKE).unwrap().columns[1], "input_length");
}

#[test]
fn a_day_of_a_later_release_has_an_offset() {
    let t = read("a.csv", &AZURE.replace("5000000,", "500000+00:00,").replace("7500000,", "750000+00:00,")).unwrap();
    assert_eq!(t.span().get(), 2.25);
    assert_eq!(csv::seconds("1970-01-02T00:00:00Z"), Some(86_400.0));
    assert_eq!(csv::seconds("1970-01-02 01:00:00+01:00"), Some(86_400.0));
    for bad in ["1970-01-02", "1970-01-02 24:00:00", "1970-02-30 00:00:00", "1970-01-02 0:x:0", "1970-01-02 00:00:00+1"]
    {
        assert_eq!(csv::seconds(bad), None, "{bad}");
    }
}

#[test]
fn without_times_it_is_a_workload_but_not_a_trace() {
    let t = workload("u.csv", UNTIMED).unwrap();
    assert_eq!((t.timed, t.input().get(), t.span().get()), (false, 400.0, 0.0));
    assert!(read("u.csv", UNTIMED).unwrap_err().to_string().contains("no column time_s"));
}

#[test]
fn a_slip_is_named_with_its_line() {
    let refused = |text: &str| read("t.csv", text).unwrap_err().to_string();
    assert!(refused("time_s,input_tokens\n").contains("output_tokens"));
    assert!(refused("time_s,input_tokens,output_tokens\n0,-1,2\n").contains("line 2 input_tokens = -1"));
    assert!(refused("time_s,input_tokens,output_token\n0,1,2\n").contains("did you mean \"output_tokens\""));
    assert!(refused("time_s,input_tokens,output_tokens,cache_read_tokens\n0,1,2,3\n").contains("whole prompt"));
    assert!(refused("{\"timestamp\": 1}").contains("line 1"));
    assert!(refused("").contains("the trace is empty"));
    assert!(refused("\n \n").contains("the trace is empty"));
    assert!(refused("time_s,isl,osl\n").contains("a header and no requests"));
    let other = refused("when,question,said\n0,1,2\n");
    assert!(
        other.contains("no column output_tokens among when,question,said") && other.contains("time, prompt, answer")
    );
    assert!(refused("time_s,isl,input_tokens,osl\n").contains("mean the same"));
    assert!(refused("time_s,isl,osl\n0,1,2,3\n").contains("line 2 columns = 4"));
    let line = refused(&AZURE.replace("2023-11-17 00", "2023-11-31 00"));
    assert!(line.contains("line 3 timestamp = 2023-11-31"), "{line}");
    assert!(refused(&BURST.replace("230", "lots")).contains("line 3 response_tokens = lots"));
}

#[test]
fn blocks_have_the_size_that_fits_all_rows() {
    let t =
        read("m.csv", "arrival_ms,input_tokens,output_tokens,hash_ids\n0,6758,500,0 1 2 3 4 5 6 7 8 9 10 11 12 13\n")
            .unwrap();
    assert_eq!((t.block.get(), t.requests[0].blocks.len(), t.has_turns()), (512.0, 14, false));
    let t = workload("w.csv", "session,think_ms,isl,osl,hash_ids\n0,0,9862,1,3 4\n0,0,190,1,3 4 5\n").unwrap();
    assert_eq!(t.block.get(), 64.0);
    assert_eq!(read("n.csv", "time_s,isl,osl\n0,10,20\n").unwrap().block.get(), 512.0);
    let t = read("a.csv", "arrival_ms,isl,osl,client,hash_ids\n0,130,5,9,7 8 9\n1,64,1,9,7\n2,64,1,9,\n").unwrap();
    assert_eq!((t.block.get(), t.requests[1].blocks.clone(), t.requests[2].blocks.len()), (64.0, vec![7], 0));
}

#[test]
fn turns_of_conversations_wait_for_each_other() {
    let text = "session,turn,agent_depth,t_ms,think_ms,api_ms,input_tokens,output_tokens,blocks,prefix_blocks,tool_tokens,system_tokens\n\
                a,1,0,0,0,7340,6400,169,100,0,10,20\nb,1,0,0,0,1,640,1,10,0,1,1\na,2,0,9000,1500,7340,7040,10,110,100,10,20\n";
    let t = workload("s.csv", text).unwrap();
    assert_eq!((t.timed, t.has_turns(), t.requests.len()), (false, true, 3));
    let turn = t.requests[2].turn.unwrap();
    assert_eq!((turn.session, turn.number, turn.think.get(), turn.same.get()), (0, 2.0, 1.5, 6400.0));
    let t = workload("k.csv", "session,think_ms,isl,osl,cached_tokens_recorded\n0,0,23522,89,15825\n").unwrap();
    assert_eq!(t.requests[0].turn.unwrap().same.get(), 15825.0);
    // With times they are replayed as logged.
    let t = read("t.csv", "time_s,session,think_ms,isl,osl\n0,0,0,10,20\n").unwrap();
    assert!(t.timed && !t.has_turns());
}

#[test]
fn bad_rows_are_refused_with_their_line_or_counted() {
    let head = "arrival_ms,input_tokens,output_tokens,hash_ids\n";
    for (rows, said) in [
        ("0,10,10,1 x\n", "line 2 hash_ids = x"),
        ("0,10,10,1\n1,10,10,-1\n", "line 3 hash_ids = -1"),
        ("0,10,10,1\n1,10,10,1 2 3 4\n", "line 3 hash_ids = 4 ids for 10 tokens"),
        ("0,10\n", "line 2 output_tokens ="),
        ("0,1e10,1,\n", "line 2 input_tokens = 10000000000"),
        ("0,10,nan,\n", "line 2 output_tokens = NaN"),
        ("-5,10,1,\n", "line 2 arrival_ms = -0.005"),
        ("1e15,10,1,\n", "line 2 arrival_ms = 1000000000000"),
        ("0,10,10,1,7,7\n", "line 2 columns = 6"),
        ("\n# why\n\n0,10,ten,1\n", "line 5 output_tokens = ten"),
    ] {
        let error = read("t.csv", &format!("{head}{rows}")).unwrap_err().to_string();
        assert!(error.contains(said), "{rows:?}: {error}");
    }
    let session = "session,turn,think_ms,input_tokens,output_tokens\n0,1,soon,10,10\n";
    assert!(workload("t.csv", session).unwrap_err().to_string().contains("line 2 think_ms = soon"));
    assert!(
        read("t.jsonl", "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}\n{oops}\n")
            .unwrap_err()
            .to_string()
            .contains("line 2")
    );
    let t = read("t.csv", &format!("{head}5000,10,10,\n4000,0,10,\n9000,10,0,\n8000,1,1,\n")).unwrap();
    assert_eq!((t.requests.len(), t.reversed, t.span().get()), (4, 2, 5.0));
}

#[test]
fn a_million_requests_at_one_time_are_read() {
    let text = format!("time_s,isl,osl\n{}", "0,5,5\n".repeat(1_000_000));
    let t = read("t.csv", &text).unwrap();
    assert_eq!((t.requests.len(), t.span().get(), t.reversed), (1_000_000, 0.0, 0));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[ -~\\n]{0,200}") {
        let _ = workload("t", &text);
    }

    // Good files with a few bytes changed come closest to what a reader trips over.
    #[test]
    fn a_damaged_file_is_read_or_refused_in_few_words(
        which in 0usize..5, edits in prop::collection::vec((0usize..400, any::<char>(), 0u8..3), 1..8)
    ) {
        let mut text: Vec<char> = [MOONCAKE, AZURE, BURST, PLAIN, UNTIMED][which].chars().collect();
        for (at, c, kind) in edits {
            let at = at % (text.len() + 1);
            match kind {
                0 => text.insert(at, c),
                1 if at < text.len() => text[at] = c,
                _ if at < text.len() => { text.remove(at); }
                _ => {}
            }
        }
        let text: String = text.into_iter().collect();
        match workload("t", &text) {
            Ok(t) => prop_assert!(!t.requests.is_empty() && t.requests[0].time.get() == 0.0),
            Err(e) => prop_assert!(e.to_string().len() < 2_000),
        }
    }
}
