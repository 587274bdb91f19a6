//! The command lines of the components, and the kubeconfigs of their clients. Values in, values out.
//!
//! ```text
//!  <dir>/etcd-ca.crt  etcd.crt|key        etcd trusts only these; the API server calls it with them
//!        api-ca.crt   api-server.crt|key  what clients check
//!        tokens       the administrator   etcd/  its data
//! ```

use std::path::Path;

/// The ports of one control plane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) api: u16,
    pub(super) etcd: u16,
    pub(super) etcd_peer: u16,
}

/// `durable`: every commit reaches the disk, as in a cluster.
pub(super) fn etcd(dir: &Path, ports: Ports, durable: bool) -> Vec<String> {
    let client = format!("https://127.0.0.1:{}", ports.etcd);
    let peer = format!("https://127.0.0.1:{}", ports.etcd_peer);
    let file = |name: &str| dir.join(name).display().to_string();
    let mut flags = vec![
        "--name=one".to_owned(),
        format!("--data-dir={}", file("etcd")),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=one={peer}"),
    ];
    for prefix in ["", "peer-"] {
        flags.extend([
            format!("--{prefix}cert-file={}", file("etcd.crt")),
            format!("--{prefix}key-file={}", file("etcd.key")),
            format!("--{prefix}trusted-ca-file={}", file("etcd-ca.crt")),
            format!("--{prefix}client-cert-auth"),
        ]);
    }
    if !durable {
        flags.push("--unsafe-no-fsync".to_owned());
    }
    flags
}

pub(super) fn api_server(dir: &Path, ports: Ports) -> Vec<String> {
    let file = |name: &str| dir.join(name).display().to_string();
    vec![
        format!("--etcd-servers=https://127.0.0.1:{}", ports.etcd),
        format!("--etcd-cafile={}", file("etcd-ca.crt")),
        format!("--etcd-certfile={}", file("etcd.crt")),
        format!("--etcd-keyfile={}", file("etcd.key")),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.api),
        format!("--tls-cert-file={}", file("api-server.crt")),
        format!("--tls-private-key-file={}", file("api-server.key")),
        format!("--client-ca-file={}", file("api-ca.crt")),
        format!("--token-auth-file={}", file("tokens")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!(
            "--service-account-key-file={}",
            file("service-accounts.pub")
        ),
        format!(
            "--service-account-signing-key-file={}",
            file("service-accounts.key")
        ),
        "--authorization-mode=Node,RBAC".to_owned(),
        // Nobody routes to it: there are no nodes, and the endpoints of `kubernetes` are not kept.
        "--service-cluster-ip-range=10.254.0.0/16".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--profiling=false".to_owned(),
    ]
}

pub(super) fn controller_manager(dir: &Path, kubeconfig: &Path) -> Vec<String> {
    let file = |name: &str| dir.join(name).display().to_string();
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        // It serves nothing: whether it works is asked of the API server.
        "--secure-port=0".to_owned(),
        "--use-service-account-credentials=true".to_owned(),
        format!(
            "--service-account-private-key-file={}",
            file("service-accounts.key")
        ),
        format!("--root-ca-file={}", file("api-ca.crt")),
        // A namespace that a test deletes is gone in moments, not in minutes.
        "--namespace-sync-period=30s".to_owned(),
    ]
}

/// How a client proves who it is.
pub(super) enum Credential<'a> {
    Token(&'a str),
    Certificate {
        certificate: &'a Path,
        key: &'a Path,
    },
}

/// A kubeconfig with one cluster and one user.
pub(super) fn kubeconfig(server: &str, authority: &Path, user: &str, by: &Credential) -> String {
    let credential = match by {
        Credential::Token(token) => format!("{{token: {token:?}}}"),
        Credential::Certificate { certificate, key } => {
            format!(
                "{{client-certificate: {:?}, client-key: {:?}}}",
                certificate.display().to_string(),
                key.display().to_string()
            )
        }
    };
    let authority = authority.display().to_string();
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: mooring\n\
         clusters:\n- name: mooring\n  cluster: {{server: {server:?}, certificate-authority: {authority:?}}}\n\
         contexts:\n- name: mooring\n  context: {{cluster: mooring, user: {user:?}}}\n\
         users:\n- name: {user:?}\n  user: {credential}\n"
    )
}
