// SPDX-License-Identifier: Apache-2.0
#include "control/connect.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "triax/error.hpp"

namespace triax::control {

namespace {

using std::chrono::milliseconds;

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string hello_of(const ClientRequest& request) {
  if (request.token.secret().size() > JobToken::kMaxBytes)
    throw Error(text("the job token is longer than {} bytes", JobToken::kMaxBytes), {}, kShortenToken);
  Hello hello;
  hello.rank = request.rank;
  hello.world = request.world;
  hello.pid = ::getpid();
  hello.host = host_name();
  hello.token = request.token.secret();
  return encode(hello);
}

[[noreturn]] void refuse(const os::Address& server, const std::string& why) {
  const std::string text_of = text("the job server at {} refused this rank", server);
  if (!why.empty()) throw Error(text_of + ": " + why);
  throw Error(text_of, {}, "set the same TRIAX_JOB_TOKEN or launch.token_file on all ranks");
}

/// One attempt. On a failure worth a retry, returns nothing and sets `why`.
std::optional<Connection> try_enter(const ClientRequest& request, const std::string& hello, Deadline deadline,
                                    std::string& why) {
  std::optional<os::Descriptor> socket = os::connect_to(request.server, deadline, why);
  if (!socket) return std::nullopt;
  Connection connection(std::move(*socket), kMaxFrameBytes);
  connection.send(hello);
  while (!connection.ended()) {
    if (!os::wait_readable(connection.socket(), deadline)) {
      why = why.empty() ? "it does not answer" : text("{}; the last attempt got no answer", why);
      return std::nullopt;
    }
    connection.receive();
    const std::optional<std::string> frame = connection.take();
    if (!frame) continue;
    const std::optional<Message> answer = decode_message(*frame);
    if (answer && answer->kind == Message::Kind::welcome) return connection;
    if (answer && answer->kind == Message::Kind::refused) refuse(request.server, answer->value);
    connection.end("the process listening there is not a Triax job server");
  }
  why = connection.why();
  return std::nullopt;
}

} // namespace

Connection enter(const ClientRequest& request, const JobAbort& flag) {
  const std::string hello = hello_of(request);
  const Deadline deadline = deadline_in(request.start_timeout_s);
  std::string why;
  for (milliseconds pause{50};; pause = std::min(2 * pause, milliseconds(1000))) {
    if (std::optional<Connection> entered = try_enter(request, hello, deadline, why)) return std::move(*entered);
    if (flag.raised()) throw Error(flag.reason());
    const Clock::time_point now = Clock::now();
    if (now >= deadline)
      throw Error(
          text("cannot connect to the job server at {} within {} s: {}", request.server, request.start_timeout_s, why),
          {},
          text("check that rank 0 runs there, and that this machine can reach that port ({}, launch.port)",
               request.server_variable.empty() ? "launch.interface" : request.server_variable));
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, deadline - now));
  }
}

} // namespace triax::control
