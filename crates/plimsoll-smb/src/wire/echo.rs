//! ECHO and CANCEL. MS-SMB2 2.2.28 to 2.2.30

layout! {
    /// Asks the server to answer. MS-SMB2 2.2.28
    EchoRequest "an ECHO request": 4 bytes, size 4 {}
}

layout! {
    /// It answers. MS-SMB2 2.2.29
    EchoResponse "an ECHO response": 4 bytes, size 4 {}
}

layout! {
    /// Gives up a request, which its header names; is not answered. MS-SMB2 2.2.30
    CancelRequest "a CANCEL request": 4 bytes, size 4 {}
}
