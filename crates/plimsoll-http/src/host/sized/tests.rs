//! Files for servers of files.

use std::os::unix::fs::MetadataExt as _;

use super::*;

#[test]
fn files_have_the_sizes_of_a_replay_and_take_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("replay.csv");
    let lines = "0,GET,/a,304,0\n1,GET,/a,200,70000000\n2,HEAD,/a/b%20c,200,9\n\
                 3,GET,/d/?x=1,200,5\n4,GET,/none,404,7\n";
    std::fs::write(&file, format!("at_us,method,path,status,bytes\n{lines}")).unwrap();
    let files = SizedFiles::of_replay(file.to_str().unwrap()).unwrap();
    files.write_to(folder.path()).unwrap();
    let file = |name: &str| std::fs::metadata(folder.path().join(name));
    let sizes = ["a.f", "a/b c.f", "d/.f"].map(|name| file(name).unwrap().len());
    assert_eq!(sizes, [70_000_000, 9, 5]);
    assert!(file("a.f").unwrap().blocks() < 100 && file("none.f").is_err());
}

#[test]
fn what_no_file_can_answer_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |line: &str| {
        let file = folder.path().join("replay.csv");
        let text = format!("at_us,method,path,status,bytes\n0,GET,/a,200,1\n{line}\n");
        std::fs::write(&file, text).unwrap();
        SizedFiles::of_replay(file.to_str().unwrap()).unwrap_err().to_string()
    };
    for (line, expected) in [
        (
            "9,POST,/a,200,1",
            "POST /a: a managed server of files cannot answer this: it has no POST",
        ),
        ("9,GET,/b,301,1", "it has no status 301"),
        ("9,GET,/a/../b,200,1", "resolve such a path to another one"),
        ("9,GET,/a/%2e%2e,200,1", "resolve such a path"),
        ("9,GET,//b,200,1", "resolve such a path"),
    ] {
        let refused = refused(line);
        assert!(refused.contains(expected), "{refused}");
    }
    let refused = |page: &str| {
        let file = folder.path().join("journey.toml");
        std::fs::write(folder.path().join("i.csv"), "path,bytes\na,5\nb,6\n").unwrap();
        let data = "[[data]]\nname = \"item\"\nfile = \"i.csv\"\norder = \"each_request\"\n";
        let text = format!("{data}[[page]]\nname = \"p\"\npath = \"/{{{{item.path}}}}\"\n{page}\n");
        std::fs::write(&file, text).unwrap();
        SizedFiles::of_journey(file.to_str().unwrap())
    };
    let files = refused("serve.bytes = \"{{item.bytes}}\"").unwrap();
    assert_eq!(files.0.into_iter().collect::<Vec<_>>(), [(b"/a".to_vec(), 5), (b"/b".to_vec(), 6)]);
    for (page, expected) in [
        ("serve.bytes = \"exponential 9\"", "a file has one size"),
        ("serve.time = \"constant 1s\"", "does not wait"),
        ("take.t = { cookie = \"t\" }", "nothing that can be taken"),
        ("expect.status = [301]", "no status 301"),
        ("[[page.request]]\npath = \"/{{int 1 9}}\"", "rows of one [[data]] alone"),
    ] {
        let refused = refused(page).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}
