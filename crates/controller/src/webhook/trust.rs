//! Where the certificate comes from, and that the API server trusts it before it is served.
//!
//! ```text
//!  Secret (made, renewed by compare-and-swap) ─► caBundle: it and its predecessor ─► served
//!  files of cert-manager ────────────────────────────────────────────────────────► served
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingWebhook, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use mooring_api::Time;
use serde_json::json;

use super::WebhookArgs;
use super::certificate::{Certificate, issue, renew_at};
use crate::error::Error;
use crate::world::World;

const SECRET: &str = "mooring-webhook-certificate";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const PREVIOUS: &str = "previous.crt";
/// When to renew, in seconds since 1970.
const RENEW: &str = "mooring.dev/renew-at";

/// The certificate to serve now, trusted already.
pub(super) async fn ensure(world: &World, args: &WebhookArgs) -> Result<Certificate, Error> {
    if let Some(dir) = &args.webhook_certificate {
        return from_files(dir);
    }
    let secret = current(world, args).await?;
    let part = |key: &str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(key));
        bytes.and_then(|b| String::from_utf8(b.0.clone()).ok())
    };
    let (Some(certificate), Some(key)) = (part(CERTIFICATE), part(KEY)) else {
        return Err(Error::Other(format!(
            "the Secret {SECRET} has no {CERTIFICATE} and {KEY}; delete it, and a new one is made"
        )));
    };
    let bundle = part(PREVIOUS).unwrap_or_default() + &certificate;
    trust(world, args, &bundle).await?;
    Ok(Certificate { certificate, key })
}

fn from_files(dir: &Path) -> Result<Certificate, Error> {
    let read = |name: &str| {
        let path = dir.join(name);
        std::fs::read_to_string(&path)
            .map_err(|e| Error::Other(format!("cannot read {}: {e}", path.display())))
    };
    Ok(Certificate {
        certificate: read(CERTIFICATE)?,
        key: read(KEY)?,
    })
}

/// The Secret as it should be: there, and not too old. Replicas may race; whoever loses reads what the winner wrote.
async fn current(world: &World, args: &WebhookArgs) -> Result<Secret, Error> {
    let api: Api<Secret> = Api::namespaced(world.client.clone(), &world.args.namespace);
    let read = Error::api("read the webhook's certificate");
    let found = api.get_opt(SECRET).await.map_err(read)?;
    let now = world.now();
    let params = PostParams {
        field_manager: Some(world.manager().to_owned()),
        ..PostParams::default()
    };
    let written = match found {
        None => {
            let secret = made(args, &world.args.namespace, None, now)?;
            api.create(&params, &secret).await
        }
        Some(secret) if is_due(&secret, now) => {
            tracing::info!(secret = SECRET, "renewing the certificate");
            let next = made(args, &world.args.namespace, Some(&secret), now)?;
            api.replace(SECRET, &params, &next).await
        }
        Some(secret) => return Ok(secret),
    };
    match written {
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let read = Error::api("read the webhook's certificate");
            api.get(SECRET).await.map_err(read)
        }
        written => written.map_err(Error::api("keep the webhook's certificate")),
    }
}

fn is_due(secret: &Secret, now: Time) -> bool {
    let at = secret.annotations().get(RENEW).and_then(|t| t.parse().ok());
    at.is_none_or(|at: u64| at <= now.0)
}

/// A new Secret after `before`, whose resourceVersion makes the replacement a compare-and-swap.
fn made(
    args: &WebhookArgs,
    namespace: &str,
    before: Option<&Secret>,
    now: Time,
) -> Result<Secret, Error> {
    let names = args.names(namespace);
    let new = issue(&names, now)
        .map_err(|e| Error::Other(format!("cannot make a certificate for {names:?}: {e}")))?;
    let mut data = BTreeMap::from([
        (
            CERTIFICATE.to_owned(),
            ByteString(new.certificate.into_bytes()),
        ),
        (KEY.to_owned(), ByteString(new.key.into_bytes())),
    ]);
    let previous = before.and_then(|s| s.data.as_ref()?.get(CERTIFICATE).cloned());
    data.extend(previous.map(|old| (PREVIOUS.to_owned(), old)));
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(SECRET.to_owned()),
            namespace: Some(namespace.to_owned()),
            resource_version: before.and_then(|s| s.metadata.resource_version.clone()),
            annotations: Some(BTreeMap::from([(
                RENEW.to_owned(),
                renew_at(now).0.to_string(),
            )])),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        data: Some(data),
        ..Secret::default()
    })
}

/// Tells the API server to trust the bundle. Writes only where it does not yet.
async fn trust(world: &World, args: &WebhookArgs, bundle: &str) -> Result<(), Error> {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(world.client.clone());
    let name = &args.webhook_configuration;
    let read = Error::api("read the ValidatingWebhookConfiguration");
    let Some(found) = api.get_opt(name).await.map_err(read)? else {
        return Err(Error::Other(format!(
            "there is no ValidatingWebhookConfiguration {name}; the chart installs it"
        )));
    };
    let hooks = found.webhooks.unwrap_or_default();
    let trusted = |bytes: &ByteString| bytes.0 == bundle.as_bytes();
    let is_trusted =
        |h: &ValidatingWebhook| h.client_config.ca_bundle.as_ref().is_some_and(trusted);
    if hooks.iter().all(is_trusted) {
        return Ok(());
    }
    let bytes = ByteString(bundle.as_bytes().to_vec());
    // All of them each time: what an apply leaves out, it gives up.
    let wanted =
        |h: &ValidatingWebhook| json!({ "name": h.name, "clientConfig": { "caBundle": bytes } });
    let hooks: Vec<_> = hooks.iter().map(wanted).collect();
    let patch = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": name },
        "webhooks": hooks,
    });
    let params = PatchParams::apply(world.manager()).force();
    api.patch(name, &params, &Patch::Apply(&patch))
        .await
        .map_err(Error::api("tell the API server which certificate to trust"))?;
    tracing::info!(
        configuration = name,
        "the API server trusts the certificate"
    );
    Ok(())
}
