//! A plan as a Kubernetes manifest: a StatefulSet and a headless Service per pool, a router, and one Service in front.
//!
//! An instance on several hosts is a StatefulSet of its own, a pod per host; a pod's index is its rank.

use super::config::config_name;
use super::router::{DISAGG_CONFIG, Router, name};
use super::server::{PORT, Place, Pool, Role, Site};
use super::{Images, list};
use rackmath_spec::file::flags::Tool;
use std::fmt::Write as _;

/// The whole manifest.
pub(super) fn manifest(site: &Site, pools: &[Pool], router: Option<&Router>, images: &Images) -> String {
    let base = name(site);
    let mut out = format!("# {} for {}: kubectl apply -f kubernetes.yaml\n", list(site.tool), site.model_name());
    configs(&mut out, site, pools, router, &base);
    for pool in pools {
        let several = site.hosts(pool) > 1;
        if several && site.tool == Tool::TrtLlm {
            let _ = writeln!(
                out,
                "# {} spans hosts: start it under MPI, for example with the MPI operator",
                pool.role.name()
            );
            continue;
        }
        let set = format!("{base}-{}", pool.role.name());
        let sets: Vec<(String, u64)> = if several {
            (0..pool.instances).map(|i| (format!("{set}-{i}"), site.hosts(pool))).collect()
        } else {
            vec![(set, pool.instances)]
        };
        for (set, replicas) in sets {
            service(&mut out, &set, &base, &Selector::Set(&set), true);
            servers(&mut out, site, pool, &set, replicas, &base, images);
        }
    }
    let front = match router {
        Some(r) => {
            routing(&mut out, r, &base, images);
            Selector::Role("router")
        }
        None => Selector::Role(Role::Serve.name()),
    };
    service(&mut out, &base, &base, &front, false);
    out
}

/// Which pods a service is for.
enum Selector<'a> {
    Set(&'a str),
    Role(&'a str),
}

fn service(out: &mut String, service: &str, app: &str, selector: &Selector, headless: bool) {
    let _ = write!(
        out,
        "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: {service}\n  labels:\n    app: {app}\nspec:\n"
    );
    if headless {
        // Ranks find each other before they answer.
        out.push_str("  clusterIP: None\n  publishNotReadyAddresses: true\n");
    }
    match selector {
        Selector::Set(set) => {
            let _ = writeln!(out, "  selector:\n    set: {set}");
        }
        Selector::Role(role) => {
            let _ = writeln!(out, "  selector:\n    app: {app}\n    role: {role}");
        }
    }
    let _ = writeln!(out, "  ports:\n    - name: http\n      port: {PORT}\n      targetPort: {PORT}");
}

/// Files of the engine, for those that take them.
fn configs(out: &mut String, site: &Site, pools: &[Pool], router: Option<&Router>, base: &str) {
    let mut files: Vec<(&str, String)> =
        pools.iter().filter_map(|p| Some((config_name(p.role), site.config(p)?))).collect();
    files.extend(router.and_then(|r| r.config.clone()).map(|text| (DISAGG_CONFIG, text)));
    if files.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {base}-config\n  labels:\n    app: {base}\ndata:\n"
    );
    for (file, text) in files {
        let _ = writeln!(out, "  {file}: |");
        block(out, 4, &text);
    }
}

fn block(out: &mut String, indent: usize, text: &str) {
    for line in text.lines() {
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
}

/// The device a pod asks for.
fn device(vendor: &str) -> &'static str {
    match vendor {
        "AMD" => "amd.com/gpu",
        "Intel" => "habana.ai/gaudi",
        "Google" => "google.com/tpu",
        "AWS" => "aws.amazon.com/neuron",
        _ => "nvidia.com/gpu",
    }
}

fn image(images: &Images, list: &str) -> String {
    images.get(list).and_then(|(image, _)| image.clone()).unwrap_or_else(|| format!("{list}:latest"))
}

/// The shell lines a server's container runs.
fn start(site: &Site, pool: &Pool, set: &str) -> String {
    let several = site.hosts(pool) > 1;
    let mut text = String::new();
    if several {
        let _ = writeln!(text, "export HEAD={set}-0.{set}");
    }
    text += &site.setup(pool);
    let file = config_name(pool.role);
    let line = site.line(pool, Place::Script).replace(&format!("--config {file}"), &format!("--config /config/{file}"));
    text + "exec " + &line + "\n"
}

fn servers(out: &mut String, site: &Site, pool: &Pool, set: &str, replicas: u64, base: &str, images: &Images) {
    let several = site.hosts(pool) > 1;
    let (role, chips) = (pool.role.name(), site.chips_on_host(pool));
    let _ = write!(
        out,
        "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata:\n  name: {set}\n  labels:\n    app: {base}\n    role: {role}\nspec:\n  \
         serviceName: {set}\n  replicas: {replicas}\n  podManagementPolicy: Parallel\n  selector:\n    matchLabels:\n      set: {set}\n  \
         template:\n    metadata:\n      labels:\n        app: {base}\n        role: {role}\n        set: {set}\n    spec:\n      containers:\n        \
         - name: server\n          image: {}\n          command: [\"/bin/sh\", \"-c\"]\n          args:\n            - |\n",
        image(images, list(site.tool))
    );
    block(out, 14, &start(site, pool, set));
    out.push_str("          env:\n            - name: HF_TOKEN\n              valueFrom:\n                secretKeyRef:\n                  name: hf-token\n                  key: token\n                  optional: true\n");
    if several {
        out.push_str("            - name: RANK\n              valueFrom:\n                fieldRef:\n                  fieldPath: metadata.labels['apps.kubernetes.io/pod-index']\n");
    }
    if site.tool == Tool::Vllm && pool.role != Role::Serve {
        out.push_str("            - name: VLLM_NIXL_SIDE_CHANNEL_HOST\n              valueFrom:\n                fieldRef:\n                  fieldPath: status.podIP\n");
    }
    let _ = write!(
        out,
        "          ports:\n            - containerPort: {PORT}\n          resources:\n            limits:\n              {}: {chips}\n",
        device(site.vendor)
    );
    probe(out, several);
    out.push_str("          volumeMounts:\n            - name: shm\n              mountPath: /dev/shm\n");
    let config = site.config(pool).is_some();
    if config {
        out.push_str("            - name: config\n              mountPath: /config\n");
    }
    out.push_str("      volumes:\n        - name: shm\n          emptyDir:\n            medium: Memory\n");
    if config {
        let _ = writeln!(out, "        - name: config\n          configMap:\n            name: {base}-config");
    }
}

/// Loading weights takes minutes: a pod is asked for two hours before it is given up.
fn probe(out: &mut String, several: bool) {
    out.push_str("          startupProbe:\n            periodSeconds: 10\n            failureThreshold: 720\n");
    if several {
        // Only rank 0 answers.
        let _ = write!(
            out,
            "            exec:\n              command:\n                - python3\n                - -c\n                - |\n                  \
             import os, urllib.request\n                  \
             os.environ.get(\"RANK\", \"0\") != \"0\" or urllib.request.urlopen(\"http://localhost:{PORT}/health\")\n"
        );
    } else {
        let _ = write!(out, "            httpGet:\n              path: /health\n              port: {PORT}\n");
        let _ = write!(
            out,
            "          readinessProbe:\n            httpGet:\n              path: /health\n              port: {PORT}\n"
        );
    }
}

fn routing(out: &mut String, r: &Router, base: &str, images: &Images) {
    let package = images.get(&r.command.flags).and_then(|(_, package)| package.clone());
    let install = package.map_or_else(String::new, |p| format!("pip install {p}\n"));
    let line = r.command.line.replace(&format!("-c {DISAGG_CONFIG}"), &format!("-c /config/{DISAGG_CONFIG}"));
    let _ = write!(
        out,
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {base}-router\n  labels:\n    app: {base}\n    role: router\nspec:\n  \
         replicas: 1\n  selector:\n    matchLabels:\n      set: {base}-router\n  template:\n    metadata:\n      labels:\n        app: {base}\n        \
         role: router\n        set: {base}-router\n    spec:\n      containers:\n        - name: router\n          image: {}\n          \
         command: [\"/bin/sh\", \"-c\"]\n          args:\n            - |\n",
        image(images, &r.command.flags)
    );
    block(out, 14, &format!("{install}exec {line}\n"));
    let _ = writeln!(out, "          ports:\n            - containerPort: {PORT}");
    if r.config.is_some() {
        let _ = write!(
            out,
            "          volumeMounts:\n            - name: config\n              mountPath: /config\n      volumes:\n        - name: config\n          \
             configMap:\n            name: {base}-config\n"
        );
    }
}
