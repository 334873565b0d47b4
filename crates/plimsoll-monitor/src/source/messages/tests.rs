use proptest::prelude::*;

use super::*;

const HEAD: &str = "Welcome to db!\n=plimsoll hello 1 71 70 Linux 6.1.0 x86_64\n";
const FRAME: &str = "=plimsoll begin 4\n=plimsoll servers 812 90\n==> /proc/stat <==\n\
    cpu  1 2 3\nctxt 9\n\n==> /sys/class/net/lo/speed <==\n\n==> /proc/loadavg <==\n0.5\n\n\
    =plimsoll end 4\n";

fn messages(text: &str) -> Vec<Message> {
    let mut assembler = Assembler::default();
    let lines = text.lines().enumerate();
    lines.filter_map(|(at, line)| assembler.line(line, at as u64)).collect()
}

fn whole(message: &Message) -> &Whole {
    match message {
        Message::Whole(whole) => whole,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_frame_has_the_texts_of_its_files_and_the_instant_it_began() {
    let all = messages(&format!("{HEAD}=plimsoll pong 3 1700000000123456789\n{FRAME}"));
    let system = "Linux 6.1.0 x86_64".to_owned();
    assert_eq!(all[0], Message::Hello { shell: 71, parent: 70, system });
    assert_eq!(all[1], Message::Pong { number: 3, clock: "1700000000123456789".into() });
    let frame = whole(&all[2]);
    assert_eq!((frame.number, frame.begun_ns, &frame.servers[..]), (4, 3, &[90, 812][..]));
    assert_eq!(frame.texts["proc/stat"], "cpu  1 2 3\nctxt 9\n");
    assert_eq!(frame.texts["proc/loadavg"], "0.5\n");
    assert_eq!(frame.texts["sys/class/net/lo/speed"], "", "it could not be read");
    assert_eq!(frame.texts.len(), 3);
}

#[test]
fn what_other_programs_told_there_stands_beside_the_files() {
    let all = messages(&FRAME.replace("/proc/loadavg", "/plimsoll/shaping"));
    assert_eq!(whole(&all[0]).texts["plimsoll/shaping"], "0.5\n");
}

#[test]
fn a_frame_that_was_cut_is_none_and_the_next_one_is_whole() {
    for at in 0..FRAME.len() - 1 {
        if !FRAME.is_char_boundary(at) {
            continue;
        }
        let all = messages(&format!("{}\n{FRAME}", &FRAME[..at]));
        let frame = whole(&all[0]);
        assert_eq!((all.len(), frame.texts.len()), (1, 3), "cut at {at}");
        assert_eq!(frame.texts["proc/stat"], "cpu  1 2 3\nctxt 9\n");
    }
}

#[test]
fn a_frame_without_end_takes_no_more_than_its_share_of_memory() {
    let mut assembler = Assembler::default();
    assembler.line("=plimsoll begin 1", 0);
    assembler.line("==> /proc/stat <==", 0);
    let line = "x".repeat(1024 * 1024);
    for _ in 0..40 {
        assert_eq!(assembler.line(&line, 0), None);
    }
    assert!(assembler.frame.is_none() && assembler.file.is_none());
    assert_eq!(assembler.line("=plimsoll end 1", 0), None);
}

proptest! {
    #[test]
    fn no_line_is_too_odd(
        lines in prop::collection::vec("(=plimsoll )?(begin|end|servers|hello|pong|==> /proc/|.{0,9})[ 0-9<=]{0,12}", 0..40),
    ) {
        let mut assembler = Assembler::default();
        for line in lines {
            assembler.line(&line, 0);
        }
    }
}
