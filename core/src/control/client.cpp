// SPDX-License-Identifier: Apache-2.0
#include "control/client.hpp"

#include <optional>
#include <system_error>
#include <thread>

#include "base/start_thread.hpp"
#include "control/client_thread.hpp"
#include "triax/error.hpp"

namespace triax::control {

namespace {

using Kind = Message::Kind;

Message make(Kind kind, std::string_view key, std::string_view value = {}) {
  Message message;
  message.kind = kind;
  message.key = key;
  message.value = value;
  if (message_overhead() + key.size() + value.size() > kMaxFrameBytes)
    throw Error(text("the value of \"{}\" has {} bytes; {} MiB is the maximum", key.substr(0, 100), value.size(),
                     kMaxFrameBytes >> 20),
                "store");
  return message;
}

} // namespace

struct Client::Impl {
  Impl(const ClientRequest& request, JobAbort& flag) : silence_s(request.silence_s), serving(request, flag) {
    thread = start_thread(text("the connection thread of rank {}", request.rank),
                          [this] { return std::thread([this] { serving.run(); }); });
  }
  ~Impl() {
    serving.quit();
    thread.join();
  }

  Deadline soon() const { return deadline_in(silence_s); }

  const double silence_s;
  ClientThread serving;
  std::thread thread;
  std::optional<JobAbort::Listening> listening; // destroyed first
};

Client::Client(const ClientRequest& request, JobAbort& flag) : impl_(std::make_unique<Impl>(request, flag)) {
  impl_->listening.emplace(flag, *this);
}

Client::~Client() {
  try {
    leave();
  } catch (const std::exception&) { // the server is lost, and no caller waits for what it has not received
  }
  impl_->listening.reset(); // first: until then the flag can call abort()
}

void Client::set(std::string_view key, std::string_view value) {
  impl_->serving.call(make(Kind::set, key, value), impl_->soon(), text("store, setting the key \"{}\"", key));
}

std::string Client::get(std::string_view key, Deadline deadline) {
  const std::string where = text("store, waiting for the key \"{}\"", key);
  Message answer = impl_->serving.call(make(Kind::get, key), deadline, where);
  if (answer.kind == Kind::value) return std::move(answer.value);
  throw Error(text("timed out waiting for key \"{}\"", key), "store", "the rank that sets it may be slow or lost");
}

std::int64_t Client::add(std::string_view key, std::int64_t amount) {
  return add(key, amount, impl_->soon());
}

std::int64_t Client::add(std::string_view key, std::int64_t amount, Deadline deadline) {
  Message request = make(Kind::add, key);
  request.number = amount;
  return impl_->serving.call(std::move(request), deadline, text("store, counting \"{}\"", key)).number;
}

void Client::count(std::string_view key, std::int64_t amount) {
  Message request = make(Kind::add, key);
  request.number = amount;
  impl_->serving.post(std::move(request));
}

void Client::barrier(std::string_view name, Deadline deadline) {
  const std::string where = text("barrier \"{}\"", name);
  const Message answer = impl_->serving.call(make(Kind::barrier, name), deadline, where);
  if (answer.kind == Kind::done) return;
  const bool many = answer.value.find_first_of(",-") != std::string::npos;
  throw Error(text("timed out waiting for rank{} {}", many ? "s" : "", answer.value), where,
              "the ranks may be slow or lost");
}

void Client::send(std::string_view topic, std::string_view text) {
  impl_->serving.post(make(Kind::worker_message, topic, text));
}

void Client::send_position(double timeout_s) noexcept {
  impl_->serving.send_position(timeout_s);
}

void Client::leave() {
  impl_->serving.leave();
}

void Client::abort(std::string_view why) noexcept {
  impl_->serving.abort(why);
}

} // namespace triax::control
