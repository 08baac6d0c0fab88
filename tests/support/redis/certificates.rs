//! Certificates that are made for one server and trusted by nobody else: an authority, a server on
//! loopback and a client.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::support::temp_dir::TempDir;

/// Paths of PEM files.
#[derive(Clone, Debug)]
pub struct Certificates {
    pub authority: String,
    pub server: String,
    pub server_key: String,
    pub client: String,
    pub client_key: String,
}

impl Certificates {
    /// Makes them, as files in this directory.
    #[track_caller]
    pub fn make(dir: &TempDir) -> Self {
        let mut authority = params("test authority", &[]);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().unwrap();
        let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
        let issuer = Issuer::new(authority, authority_key);
        let issue = |name: &str, hosts: &[&str]| {
            let key = KeyPair::generate().unwrap();
            let certificate = params(name, hosts).signed_by(&key, &issuer).unwrap();
            let certificate = dir.write(&format!("{name}.pem"), &certificate.pem());
            (certificate, dir.write(&format!("{name}.key"), &key.serialize_pem()))
        };
        let (server, server_key) = issue("server", &["127.0.0.1", "localhost"]);
        let (client, client_key) = issue("client", &[]);
        let authority = dir.write("authority.pem", &authority_pem);
        Self { authority, server, server_key, client, client_key }
    }
}

fn params(name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
