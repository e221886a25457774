//! Patterns by which llama.cpp puts tensors elsewhere (`--override-tensor exps=CPU`): the part of regular expressions that people
//! write there, and which layers' experts such a pattern means.
//!
//! Taken: characters, `.`, classes such as `[0-9]`, `\d`, `\w` and escaped signs, groups with `|`, `*`, `+`, `?`, `{2}`, `{1,2}`, `^`
//! and `$`; found anywhere in a name, as `std::regex_search` does. Anything else is not read, and said to be so.

/// Layers that are looked through: no model that is known has more.
const LAYERS: u64 = 512;

/// What a pattern puts elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The experts of these layers, and nothing else.
    Experts(Vec<u64>),
    /// Other tensors, parts of an expert, or what cannot be read.
    Else,
}

/// What patterns mean that all send their tensors to the host: `exps=CPU`, `blk\.(1|2)\.ffn_.*_exps\.=CPU`.
pub fn moved(value: &str) -> Moved {
    let mut layers: Vec<u64> = Vec::new();
    for part in value.split(',').filter(|part| !part.trim().is_empty()) {
        let Some((pattern, place)) = part.rsplit_once('=') else { return Moved::Else };
        let Some(pattern) = parse(pattern).filter(|_| place.trim().eq_ignore_ascii_case("cpu")) else {
            return Moved::Else;
        };
        let found = |name: String| found(&pattern, &name);
        let others = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate_inp"];
        let whole = ["token_embd.weight", "output.weight", "output_norm.weight"];
        if whole.iter().any(|name| found((*name).to_owned())) {
            return Moved::Else;
        }
        for layer in 0..LAYERS {
            let of = |kind: &str| found(format!("blk.{layer}.{kind}.weight"));
            let experts = ["ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"].map(of);
            if others.iter().any(|kind| of(kind)) || (experts.contains(&true) && experts.contains(&false)) {
                return Moved::Else;
            }
            if experts[0] && !layers.contains(&layer) {
                layers.push(layer);
            }
        }
    }
    if layers.is_empty() {
        return Moved::Else;
    }
    layers.sort_unstable();
    Moved::Experts(layers)
}

/// Whether all layers are meant, however many there are.
pub fn all(layers: &[u64]) -> bool {
    layers.len() as u64 == LAYERS
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    /// One character of these ranges, or of none of them.
    One(Vec<(char, char)>, bool),
    Group(Vec<Vec<Node>>),
    Repeat(Box<Node>, usize, usize),
    Begin,
    End,
}

/// Most characters of a pattern, repeats of one part, and groups in groups: what is larger is not read.
const MOST: usize = 4096;
const REPEATS: usize = 64;
const DEPTH: usize = 8;

fn parse(text: &str) -> Option<Vec<Vec<Node>>> {
    let letters: Vec<char> = text.trim().chars().collect();
    if letters.is_empty() || letters.len() > MOST {
        return None;
    }
    let mut at = 0;
    let read = choices(&letters, &mut at, 0)?;
    (at == letters.len()).then_some(read)
}

fn choices(text: &[char], at: &mut usize, depth: usize) -> Option<Vec<Vec<Node>>> {
    let mut all = vec![Vec::new()];
    while let Some(c) = text.get(*at) {
        let last = all.last_mut()?;
        match c {
            ')' if depth > 0 => break,
            '|' => {
                *at += 1;
                all.push(Vec::new());
            }
            _ => {
                let one = node(text, at, depth)?;
                last.push(repeated(text, at, one)?);
            }
        }
    }
    Some(all)
}

fn node(text: &[char], at: &mut usize, depth: usize) -> Option<Node> {
    let c = *text.get(*at)?;
    *at += 1;
    let one = |c: char| Node::One(vec![(c, c)], false);
    Some(match c {
        '.' => Node::One(Vec::new(), true),
        '^' => Node::Begin,
        '$' => Node::End,
        '\\' => {
            let escaped = *text.get(*at)?;
            *at += 1;
            match escaped {
                'd' => Node::One(vec![('0', '9')], false),
                'w' => Node::One(vec![('a', 'z'), ('A', 'Z'), ('0', '9'), ('_', '_')], false),
                sign if !sign.is_alphanumeric() => one(sign),
                _ => return None,
            }
        }
        '(' if depth < DEPTH => {
            if text.get(*at) == Some(&'?') {
                (text.get(*at + 1) == Some(&':')).then_some(())?;
                *at += 2;
            }
            let inner = choices(text, at, depth + 1)?;
            (text.get(*at) == Some(&')')).then(|| *at += 1)?;
            Node::Group(inner)
        }
        '[' => class(text, at)?,
        '(' | ')' | ']' | '{' | '}' | '*' | '+' | '?' => return None,
        plain => one(plain),
    })
}

fn class(text: &[char], at: &mut usize) -> Option<Node> {
    let not = text.get(*at) == Some(&'^');
    *at += usize::from(not);
    let mut ranges = Vec::new();
    loop {
        let from = *text.get(*at)?;
        *at += 1;
        match from {
            ']' => return (!ranges.is_empty()).then_some(Node::One(ranges, not)),
            '\\' => {
                let sign = *text.get(*at)?;
                *at += 1;
                match sign {
                    'd' => ranges.push(('0', '9')),
                    sign if !sign.is_alphanumeric() => ranges.push((sign, sign)),
                    _ => return None,
                }
            }
            _ if text.get(*at) == Some(&'-') && text.get(*at + 1).is_some_and(|to| *to != ']') => {
                ranges.push((from, text[*at + 1]));
                *at += 2;
            }
            _ => ranges.push((from, from)),
        }
    }
}

fn repeated(text: &[char], at: &mut usize, one: Node) -> Option<Node> {
    let (least, most) = match text.get(*at) {
        Some('*') => (0, usize::MAX),
        Some('+') => (1, usize::MAX),
        Some('?') => (0, 1),
        Some('{') => {
            let end = text[*at..].iter().position(|c| *c == '}')? + *at;
            let inner: String = text[*at + 1..end].iter().collect();
            *at = end;
            let (least, most) = inner.split_once(',').unwrap_or((&inner, &inner));
            let number = |text: &str| text.parse::<usize>().ok().filter(|n| *n <= REPEATS);
            (number(least)?, if most.is_empty() { usize::MAX } else { number(most)? })
        }
        _ => return Some(one),
    };
    *at += 1;
    // As few as possible is the same where nothing but a match is asked for.
    *at += usize::from(text.get(*at) == Some(&'?'));
    Some(Node::Repeat(Box::new(one), least, most))
}

/// Whether a pattern stands anywhere in a name.
fn found(pattern: &[Vec<Node>], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    (0..=name.len()).any(|from| pattern.iter().any(|way| !ends(way, &name, vec![from]).is_empty()))
}

/// Where a row of nodes can end that begins at any of these places.
fn ends(way: &[Node], name: &[char], mut from: Vec<usize>) -> Vec<usize> {
    for node in way {
        from = step(node, name, &from);
        if from.is_empty() {
            break;
        }
    }
    from
}

fn step(node: &Node, name: &[char], from: &[usize]) -> Vec<usize> {
    let mut to: Vec<usize> = Vec::new();
    match node {
        Node::Begin => to.extend(from.iter().filter(|at| **at == 0)),
        Node::End => to.extend(from.iter().filter(|at| **at == name.len())),
        Node::One(ranges, not) => {
            let is = |c: &char| ranges.iter().any(|(a, b)| (a..=b).contains(&c)) != *not;
            to.extend(from.iter().filter(|at| name.get(**at).is_some_and(is)).map(|at| at + 1));
        }
        Node::Group(ways) => to.extend(ways.iter().flat_map(|way| ends(way, name, from.to_vec()))),
        Node::Repeat(one, least, most) => {
            let mut here = from.to_vec();
            let mut times = 0;
            loop {
                if times >= *least {
                    let new: Vec<usize> = here.iter().copied().filter(|at| !to.contains(at)).collect();
                    if new.is_empty() {
                        break;
                    }
                    to.extend(&new);
                }
                if times >= *most {
                    break;
                }
                here = step(one, name, &here);
                times += 1;
                if here.is_empty() {
                    break;
                }
            }
        }
    }
    to.sort_unstable();
    to.dedup();
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_threads_mean_the_experts_they_name() {
        for line in [
            "exps=CPU",
            r"\.ffn_.*_exps\.=CPU",
            r".ffn_.*_exps.=CPU",
            r"ffn_(gate|up|down)_exps=CPU",
            "ffn_.*_exps.weight=CPU",
            "([0-9]+).ffn_.*_exps.=CPU",
        ] {
            let Moved::Experts(layers) = moved(line) else { panic!("{line}") };
            assert!(all(&layers), "{line}");
        }
        let some = |line: &str| match moved(line) {
            Moved::Experts(layers) => layers,
            Moved::Else => panic!("{line}"),
        };
        assert_eq!(some(r"blk\.(2[0-9]|30)\..*exps=CPU"), (20..=30).collect::<Vec<_>>());
        assert_eq!(some(r"blk\.[0-3]\.ffn_.*_exps\.=CPU,blk\.(7|8)\.ffn_.*_exps\.=CPU"), [0, 1, 2, 3, 7, 8]);
        assert_eq!(some(r"^blk\.1\d\.ffn_(up|down|gate)_(ch|)exps\.weight$=CPU"), (10..20).collect::<Vec<_>>());
        assert_eq!(some(r"blk\.\d{3}\..*exps=CPU").len(), 412);
    }

    #[test]
    fn what_is_more_than_experts_is_not_called_experts() {
        for line in [
            "ffn=CPU",
            ".*=CPU",
            r"blk\.1\..*=CPU",
            "ffn_up_exps=CPU",
            "exps=CUDA1",
            "exps",
            "(=CPU",
            "a{99}=CPU",
            "",
            "attn=CPU",
            r"(a*)*b=CPU",
        ] {
            assert_eq!(moved(line), Moved::Else, "{line}");
        }
    }
}
