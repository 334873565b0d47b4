mod parsing;
mod public_file;
mod replaying;
