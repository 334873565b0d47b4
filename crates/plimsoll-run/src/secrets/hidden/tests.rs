use super::*;

#[test]
fn command_lines_of_servers_show_no_secret() {
    for (typed, shown) in [
        ("nginx: master process /usr/sbin/nginx -c /etc/nginx.conf", None),
        ("smbd -F -s /etc/samba/smb.conf --configfile=/etc/x.conf -p 445", None),
        (
            "redis-server *:6379 --requirepass s3cret",
            Some("redis-server *:6379 --requirepass (left out)"),
        ),
        ("app --db-password=s3cret --port=80", Some("app --db-password=(left out) --port=80")),
        ("app --token s3cret --port 80", Some("app --token (left out) --port 80")),
        ("app --key /etc/tls/k.pem", None),
        ("app --key /s3cret+x=", Some("app --key (left out)")),
        ("app --db postgres://u:s3cret@db/x", Some("app --db postgres://(left out)@db/x")),
        ("app DB_PASS=s3cret", Some("app DB_PASS=(left out)")),
        (
            "java -Djavax.net.ssl.keyStorePassword=s3cret -Xmx4g",
            Some("java -Djavax.net.ssl.keyStorePassword=(left out) -Xmx4g"),
        ),
        ("app s3cretS3CRETs3cretS3CRETs3cret", Some("app (left out)")),
        ("app --passwordless --auth=off", None),
        (
            "app --url=jdbc:postgresql://db/x?user=u&password=s3cret",
            Some("app --url=jdbc:postgresql://db/x?user=u&password=(left out)"),
        ),
        ("java -Djavax.net.ssl.keyStore=/etc/tls/k.jks -XX:MaxGCPauseMillis=200", None),
    ] {
        let arguments: Vec<String> = typed.split(' ').map(str::to_owned).collect();
        let hidden = command_line(&arguments);
        assert!(!hidden.contains("s3cret"), "{typed}: {hidden}");
        if !typed.contains("passwordless") {
            assert_eq!(hidden, shown.unwrap_or(typed));
        }
    }
}

#[test]
fn an_argument_of_several_words_ends_with_the_name_of_a_secret() {
    for (written, shown) in [
        ("app: serving --password s3cret on 80", "app: serving --password (left out)"),
        (
            "nginx: master process nginx -c /etc/nginx.conf",
            "nginx: master process nginx -c /etc/nginx.conf",
        ),
        ("Authorization: Basic s3cret", "Authorization: (left out)"),
        ("env A=b DB_PASS=\"my s3cret\" C=d", "env A=b DB_PASS=(left out) (left out)"),
        ("import socket\ns = socket.socket()\n", "import socket s = socket.socket()"),
    ] {
        assert_eq!(command_line(&[written.to_owned()]), shown);
    }
}

#[test]
fn words_hide_the_values_of_secrets_and_show_the_others() {
    for (written, shown) in [
        ("http://api/?v=1&key=s3cret;", "http://api/?v=1&key=(left out)"),
        ("http://proxy.x/?key=s3cret;", "http://proxy.x/?key=(left out)"),
        ("http://auth:9000/x", "http://auth:9000/x"),
        (r#"{"username":"bob","password":"s3cret"}"#, r#"{"username":"bob","password":(left out)"#),
        ("x://u:s3cret@h/?password=s3cret", "x://(left out)@h/?password=(left out)"),
        ("ldap://cn=x:s3cret@host/", "ldap://(left out)@host/"),
        ("password[0]=s3cret", "password[0]=(left out)"),
        ("API_KEY2=s3cret", "API_KEY2=(left out)"),
        ("accessKey:s3cret", "accessKey:(left out)"),
        ("DBPass2=s3cret", "DBPass2=(left out)"),
        ("users=bob:$2a$14$s3cretXLi", "users=bob:(left out)"),
        ("Bob:$apr1$s3cret$s3cret", "Bob:(left out)"),
        ("$argon2id$v=19$m=65536,t=3,p=4$s3cret$s3cret", "(left out)"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzM2NyZXQifQ.c2ln-x_s3cret", "(left out)"),
        ("1b4e28ba-2fa1-11d2-883f-0016d3cca427;", "(left out);"),
        ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYs3cretKEY", "(left out)"),
        ("aB3-dE5fG7hJ9_kL1mN3pQ5rS7tU9vW1-s3cret", "(left out)"),
        ("https://hooks.x.com/T0/aB3dE5fG7hJ9kL1mN3pQ5s3cret", "https:(left out)"),
        ("licence=\"s3cretS3CRETs3cretS3CRETs3cret\"", "licence=\"(left out)\""),
        (
            "/usr/lib/apache2/modules/mod_auth_basic.so",
            "/usr/lib/apache2/modules/mod_auth_basic.so",
        ),
        ("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA", "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA"),
        (
            "/overlay2/3f2a9c1b7e4d5a6f3f2a9c1b7e4d5a6f/x",
            "/overlay2/3f2a9c1b7e4d5a6f3f2a9c1b7e4d5a6f/x",
        ),
        (
            "ip-10-0-0-12.eu-west-1.compute.internal:80",
            "ip-10-0-0-12.eu-west-1.compute.internal:80",
        ),
    ] {
        assert_eq!(word(written), shown);
    }
}
