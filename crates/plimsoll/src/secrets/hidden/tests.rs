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
    let title = command_line(&["app: serving --password s3cret".into()]);
    assert_eq!(title, "app: serving --password (left out)");
}

#[test]
fn configurations_of_servers_show_no_secret() {
    let written = "worker_processes 4;\n\
        \x20 proxy_pass http://127.0.0.1:8080;\n\
        ssl_certificate_key /etc/tls/k.pem;\n\
        ssl_password_file /etc/tls/pass.conf;\n\
        proxy_set_header Authorization \"Basic s3cret\";\n\
        server_tokens off;\n\
        rocommunity s3cret 10.0.0.0/8\n\
        com2sec local default s3cret\n\
        createUser admin SHA \"s3cret\" AES s3cret\n\
        \x20 ldap admin password = s3cret\n\
        passdb backend = tdbsam:/var/lib/passdb.tdb\n\
        unix password sync = no\n\
        password: \"s3cret\"\n\
        \"api_key\": \"s3cret\",\n\
        basic_auth bob s3cret\n\
        uri = ldap://cn=x:s3cret@host/\n\
        -----BEGIN RSA PRIVATE KEY-----\n\
        s3cret\n\
        -----END RSA PRIVATE KEY-----\n\
        listen 80;\n";
    let hidden = text(written);
    assert!(!hidden.contains("s3cret"), "{hidden}");
    for kept in [
        "worker_processes 4;\n  proxy_pass http://127.0.0.1:8080;\n",
        "ssl_certificate_key /etc/tls/k.pem;\n",
        "server_tokens off;\n",
        "rocommunity (left out)\n",
        "  ldap admin password = (left out)\n",
        "passdb backend = tdbsam:/var/lib/passdb.tdb\n",
        "unix password sync = no\n",
        "listen 80;\n",
    ] {
        assert!(hidden.contains(kept), "{kept:?} in {hidden}");
    }
    assert_eq!(text("listen 80;\n"), "listen 80;\n");
}

#[test]
fn lines_hide_the_values_of_secrets_and_show_the_others() {
    for (written, shown) in [
        (r#"DBDParams "host=h,user=u,pass=s3cret""#, r#"DBDParams "host=h,user=u,pass=(left out)"#),
        (r#"DBDParams "host=h,pass=my s3cret""#, r#"DBDParams "host=h,pass=(left out) (left out)"#),
        (
            r#"fastcgi_param DSN "mysql:host=db;user=u;password=s3cret";"#,
            r#"fastcgi_param DSN "mysql:host=db;user=u;password=(left out)"#,
        ),
        ("proxy_pass http://api/?v=1&key=s3cret;", "proxy_pass http://api/?v=1&key=(left out)"),
        ("proxy_pass http://proxy.x/?key=s3cret;", "proxy_pass http://proxy.x/?key=(left out)"),
        (r#"("A"=>"x","DB_PASS"=>"s3cret")"#, r#"("A"=>"x","DB_PASS"=(left out)"#),
        (r#"{"username":"bob","password":"s3cret"}"#, r#"{"username":"bob","password":(left out)"#),
        (r#"{"password":"s3cret", "port": 80}"#, r#"{"password":(left out) (left out)"#),
        ("uri = x://u:s3cret@h/?password=s3cret", "uri = x://(left out)@h/?password=(left out)"),
        (
            r#"proxy_set_header Authorization "Basic s3cret==";"#,
            "proxy_set_header Authorization (left out)",
        ),
        (r#"env A=b DB_PASS="my s3cret" C=d"#, "env A=b DB_PASS=(left out) (left out)"),
        ("env A=\"DB_PASS s3cret\"", "env A=\"DB_PASS (left out)"),
        ("db \"host=h password=my s3cret\"", "db \"host=h password=(left out) (left out)"),
        ("password[0]=my s3cret", "password[0]=(left out) (left out)"),
        ("basic_auth bob s3cret= x", "basic_auth (left out)"),
        (r#"secure_link_md5 "$secure_link_expires$uri s3cret";"#, "secure_link_md5 (left out)"),
        (r#"secure_link_md5 "a=$uri:s3cret";"#, "secure_link_md5 (left out)"),
        ("rocommunity s3cret:x=y", "rocommunity (left out)"),
        ("API_KEY2 = s3cret", "API_KEY2 = (left out)"),
        ("accessKey: s3cret", "accessKey: (left out)"),
        ("SetEnv apiToken s3cret", "SetEnv apiToken (left out)"),
        ("SetEnv DBPass2 s3cret", "SetEnv DBPass2 (left out)"),
        ("Bob $2a$14$s3cretXLi", "Bob (left out)"),
        ("Bob:$apr1$s3cret$s3cret", "Bob:(left out)"),
        ("hash $6$rounds=5000$s3cret$s3crets3cretS3CRETs3cret", "hash (left out)"),
        ("hash $argon2id$v=19$m=65536,t=3,p=4$s3cret$s3cret", "hash (left out)"),
        ("bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzM2NyZXQifQ.c2ln-x_s3cret", "bearer (left out)"),
        ("id 1b4e28ba-2fa1-11d2-883f-0016d3cca427;", "id (left out);"),
        ("of wJalrXUtnFEMI/K7MDENG/bPxRfiCYs3cretKEY", "of (left out)"),
        ("dns cloudflare aB3-dE5fG7hJ9_kL1mN3pQ5rS7tU9vW1-s3cret", "dns cloudflare (left out)"),
        ("to https://hooks.x.com/T0/aB3dE5fG7hJ9kL1mN3pQ5s3cret", "to https:(left out)"),
        ("licence=\"s3cretS3CRETs3cretS3CRETs3cret\"", "licence=\"(left out)\""),
    ] {
        let hidden = text(written);
        assert!(!hidden.contains("s3cret"), "{written}: {hidden}");
        assert_eq!(hidden, shown, "{written}");
    }
}

#[test]
fn lines_without_secrets_are_shown_as_they_are() {
    for written in [
        "proxy_pass http://auth:9000/x;",
        "ProxyPass / http://backend:8080/ keepalive=On",
        "LoadModule auth_basic_module /usr/lib/apache2/modules/mod_auth_basic.so",
        "AuthType Basic",
        "SSLCertificateKeyFile \"/etc/tls/k.key\"",
        "KeepAliveTimeout 5",
        "ServerTokens Prod",
        "rewrite ^/(a)/(b)$ /x/$1$is_args$args last;",
        "return 301 $2$is_args$args;",
        "ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305;",
        "ssl_conf_command Ciphersuites TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256;",
        "load_module /usr/lib/x86_64-linux-gnu/nginx/modules/ngx_http_brotli_filter_module.so;",
        "root /var/lib/docker/overlay2/3f2a9c1b7e4d5a6f3f2a9c1b7e4d5a6f/merged;",
        "Include mods-enabled/Http2.conf sites/Example2/config/main/inc",
        "server ip-10-0-0-12.eu-west-1.compute.internal:8080 max_fails=3 fail_timeout=30s;",
        "type application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "add_header Strict-Transport-Security \"max-age=63072000; includeSubDomains\";",
        "log_format main '$remote_addr [$time_local] \"$request\" $status';",
        "listen [::]:443 ssl;",
        "location /auth/ {",
    ] {
        assert_eq!(text(written), written);
    }
}

#[test]
fn a_secret_is_hidden_in_the_lines_that_go_on_with_it() {
    for (written, shown) in [
        (
            "RequestHeader set Authorization \\\n  \"Basic s3cret\"\nListen 80\n",
            "RequestHeader set Authorization \\\n  (left out)\nListen 80\n",
        ),
        (
            "DBDParams \"host=h,pass=\\\ns3cret,\\\nmore=s3cret\"\nListen 80\n",
            "DBDParams \"host=h,pass=\\\n(left out)\n(left out)\nListen 80\n",
        ),
        ("app --token=x \\\n s3cret\n", "app --token=(left out)\n (left out)\n"),
        ("Listen \\\n 80\n", "Listen \\\n 80\n"),
    ] {
        let hidden = text(written);
        assert!(!hidden.contains("s3cret"), "{written}: {hidden}");
        assert_eq!(hidden, shown, "{written}");
    }
}
