// SPDX-License-Identifier: Apache-2.0
#include "control/server.hpp"

#include <system_error>
#include <thread>

#include "base/start_thread.hpp"
#include "control/server_thread.hpp"
#include "triax/error.hpp"

namespace triax::control {

struct Server::Impl {
  explicit Impl(const ServerRequest& request) : serving(request) {}
  ~Impl() {
    if (!thread.joinable()) return;
    serving.quit();
    thread.join();
  }

  ServerThread serving;
  std::thread thread;
};

Server::Server(const ServerRequest& request) : impl_(std::make_unique<Impl>(request)) {}

Server::~Server() = default;

void Server::start() {
  TRIAX_REQUIRE(!impl_->thread.joinable(), "the server is already started");
  impl_->thread = start_thread(
      "the server thread", [this] { return std::thread([this] { impl_->serving.run(); }); }, "job server");
}

os::Address Server::address() const {
  return impl_->serving.address();
}

void Server::stop(int signal) {
  impl_->serving.stop(signal);
}

void Server::fail(const Failure& failure) {
  impl_->serving.fail(failure);
}

std::optional<Failure> Server::failure() const {
  return impl_->serving.failure();
}

std::optional<Clock::time_point> Server::failed_at() const {
  return impl_->serving.failed_at();
}

std::vector<RankStatus> Server::ranks() const {
  return impl_->serving.ranks();
}

int Server::joined() const {
  return impl_->serving.joined();
}

std::vector<int> Server::missing() const {
  return impl_->serving.missing();
}

std::int64_t Server::counter(std::string_view key) const {
  return impl_->serving.counter(key);
}

Rejections Server::rejections() const {
  return impl_->serving.rejections();
}

std::vector<WorkerMessage> Server::drain_worker_messages() {
  return impl_->serving.drain_worker_messages();
}

} // namespace triax::control
