"""Reference servers for measurements: nginx and Envoy as plain proxies, the backend, and an auth server that always
allows."""

import os

NGINX_COMMON = """
  access_log off; keepalive_timeout 300s; keepalive_requests 1000000000;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
"""

NGINX = """
daemon off; pid nginx.pid; {user} worker_processes {cores}; error_log stderr error;
events {{ worker_connections 8192; }}
http {{ {common} {body} }}
"""

BACKEND = 'server {{ listen 127.0.0.1:{port} reuseport; location / {{ default_type text/plain; return 200 "0123456789012345678901234567890123456789"; }} }}'

# Put before the filters of Envoy's listener, it makes it speak HTTP/2 by TLS.
ENVOY_TLS = """transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            alpn_protocols: [h2, http/1.1]
            tls_certificates: [{{certificate_chain: {{filename: "{cert}"}}, private_key: {{filename: "{key}"}}}}]
      """

# The fastest possible auth server: it allows every request without a check.
AUTH = "server {{ listen 127.0.0.1:{port} reuseport; location / {{ return 200; }} }}"

PLAIN = """
  upstream backend {{ server 127.0.0.1:{backend}; keepalive 512; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port} reuseport;
    location / {{ proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host; proxy_pass http://backend; }} }}
"""

# The same by HTTP/2 and TLS. An HTTP/2 request has its host in $host. Version 1.3 of TLS, as the others speak it: by
# default, nginx 1.22 offers 1.2 at most.
TLS = """
  upstream backend {{ server 127.0.0.1:{backend}; keepalive 512; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port} ssl http2 reuseport; ssl_certificate {cert}; ssl_certificate_key {key};
    ssl_protocols TLSv1.2 TLSv1.3;
    location / {{ proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; proxy_pass http://backend; }} }}
"""

# A service by HTTP/1.1 and another by HTTP/2 in cleartext. The call has one message of five bytes, which is in a file:
# the configuration of nginx cannot contain its length. nginx answers a POST to a file with 405.
SERVICES = """
  server {{ listen 127.0.0.1:{port} reuseport; location / {{ default_type text/plain; return 200 "0123456789012345678901234567890123456789"; }} }}
  server {{ listen 127.0.0.1:{http2} http2 reuseport; http2_max_concurrent_streams 256;
    location / {{ default_type text/plain; return 200 "0123456789012345678901234567890123456789"; }}
    location = /demo.Echo/Unary {{ root files; types {{ }} default_type application/grpc; add_trailer grpc-status 0; error_page 405 =200 $uri; }} }}
"""

# Calls of gRPC by TLS, to a service in cleartext.
GRPC = """
  upstream backend {{ server 127.0.0.1:{backend}; keepalive 512; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port} ssl http2 reuseport; ssl_certificate {cert}; ssl_certificate_key {key};
    ssl_protocols TLSv1.2 TLSv1.3; http2_max_concurrent_streams 256;
    location / {{ grpc_set_header Host $host; grpc_pass grpc://backend; }} }}
"""

# Put into Envoy's cluster, it makes it speak HTTP/2.
ENVOY_GRPC = """typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    """

ENVOY = """
static_resources:
  listeners:
  - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - {transport}filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: bench
          route_config:
            virtual_hosts: [{{name: all, domains: ["*"], routes: [{{match: {{prefix: "/"}}, route: {{cluster: backend}}}}]}}]
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
  clusters:
  - name: backend
    connect_timeout: 1s
    {cluster}circuit_breakers: {{thresholds: [{{max_connections: 20000, max_pending_requests: 20000, max_requests: 20000}}]}}
    load_assignment: {{cluster_name: backend, endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {backend}}}}}}}}}]}}]}}
"""


def nginx(folder, body):
    """The command of an nginx with this server and its files in the folder."""
    folder.mkdir()
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(NGINX.format(user=user, cores=os.cpu_count(), common=NGINX_COMMON, body=body))
    return ["/usr/sbin/nginx", "-p", str(folder), "-c", "nginx.conf", "-e", "stderr"]


def backend(folder, port):
    return nginx(folder, BACKEND.format(port=port))


def auth_200(folder, port):
    return nginx(folder, AUTH.format(port=port))


def plain_nginx(folder, port, backend):
    return nginx(folder, PLAIN.format(port=port, backend=backend))


def nginx_tls(folder, port, backend, cert, key):
    return nginx(folder, TLS.format(port=port, backend=backend, cert=cert, key=key))


def plain_envoy(folder, port, backend, program):
    return envoy(folder, port, backend, program, "")


def envoy_tls(folder, port, backend, program, cert, key):
    return envoy(folder, port, backend, program, ENVOY_TLS.format(cert=cert, key=key))


def services(folder, port, http2):
    """A service by HTTP/1.1 at the port, and one by HTTP/2 at the other."""
    command = nginx(folder, SERVICES.format(port=port, http2=http2))
    file = folder / "files/demo.Echo/Unary"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\0\0\0\0\5hello")
    return command


def nginx_grpc(folder, port, backend, cert, key):
    return nginx(folder, GRPC.format(port=port, backend=backend, cert=cert, key=key))


def envoy_grpc(folder, port, backend, program, cert, key):
    return envoy(folder, port, backend, program, ENVOY_TLS.format(cert=cert, key=key), ENVOY_GRPC)


def envoy(folder, port, backend, program, transport, cluster=""):
    folder.mkdir()
    file = folder / "envoy.yaml"
    file.write_text(ENVOY.format(port=port, backend=backend, transport=transport, cluster=cluster))
    return [
        program,
        "-c",
        str(file),
        "--concurrency",
        str(os.cpu_count()),
        "--disable-hot-restart",
        "--log-level",
        "error",
    ]
