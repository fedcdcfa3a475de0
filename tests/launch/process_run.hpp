// SPDX-License-Identifier: Apache-2.0
// A tiny run over comm-ucx with ranks as processes, for tests.
//
// Threads: one. Ownership: owns its folder. Blocking: start_endless_run() until the first step. For programs of
// triax_add_test.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "launch/tiny_folder.hpp"
#include "launch/train_process.hpp"
#include "support/free_port.hpp"
#include "support/program.hpp"

namespace triax::test {

inline const char* const kProcessTables = R"(
[parallel]
pipeline = 2
tensor = 2

[schedule]
plugin = "sched-1f1b"

[comm]
plugin = "comm-ucx"

[data]
path = "text"

[checkpoint]
resume = "never"
)";

class ProcessRun : public ::testing::Test {
 protected:
  ProcessRun() { fill_tiny_folder(work_, kProcessTables); }
  TrainProcess start(std::vector<std::string> sets = {}, const std::string& name = "triax",
                     const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> arguments = {"train", "run.toml"};
    for (std::string& set : sets) {
      arguments.emplace_back("--set");
      arguments.push_back(std::move(set));
    }
    return {work_.path(), name, arguments, variables};
  }
  /// Starts a run of a million steps, and waits for its first step.
  TrainProcess start_endless_run(std::vector<std::string> sets = {}) const {
    std::filesystem::remove(work_ / "run/metrics.jsonl");
    sets.emplace_back("train.steps=1000000");
    TrainProcess out = start(sets);
    while (!has_stepped() && !out.ended()) ::usleep(5000);
    return out;
  }
  /// Steps, losses and gradient norms of a run as text, with all bits.
  std::vector<std::string> losses(const std::string& folder) const {
    std::vector<std::string> out;
    std::istringstream lines(read_file(work_ / folder / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json record = nlohmann::json::parse(line);
      out.push_back(record["step"].dump() + " " + record["loss"].dump() + " " + record["grad_norm"].dump());
    }
    return out;
  }
  bool has_stepped() const {
    std::error_code none;
    return std::filesystem::file_size(work_ / "run/metrics.jsonl", none) > 0 && !none;
  }
  /// torchrun's variables of one rank.
  std::vector<std::string> variables(int rank, int world, int port) const {
    return {"RANK=" + std::to_string(rank),
            "LOCAL_RANK=" + std::to_string(rank),
            "WORLD_SIZE=" + std::to_string(world),
            "LOCAL_WORLD_SIZE=" + std::to_string(world),
            "MASTER_ADDR=127.0.0.1",
            "MASTER_PORT=" + std::to_string(port)};
  }

  TempFolder work_;
};

/// Occupies a loopback port during its lifetime.
class TakenPort {
 public:
  TakenPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(socket_, 1);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { ::close(socket_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  int port() const { return port_; }

 private:
  int socket_, port_ = 0;
};

} // namespace triax::test
