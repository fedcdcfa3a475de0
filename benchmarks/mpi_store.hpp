// SPDX-License-Identifier: Apache-2.0
// A store over MPI, for benchmarks that run under mpirun: every rank sends what it sets and adds to all others.
//
// Threads: the one that initialised MPI. Blocking: get(), until its deadline; the destructor, until all ranks reach it.
// Errors: get() throws Error at its deadline; MPI ends the program for its own errors.
#pragma once

#include <mpi.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "triax/communicator.hpp"

namespace triax::bench {

class MpiStore final : public Store {
 public:
  ~MpiStore() override {
    MPI_Barrier(MPI_COMM_WORLD); // everything has been sent
    receive();
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

  void set(std::string_view key, std::string_view value) override {
    values_.insert_or_assign(std::string(key), std::string(value));
    send('=', key, value);
  }
  std::string get(std::string_view key, Deadline deadline) override {
    for (receive(); values_.find(key) == values_.end(); receive()) {
      if (Clock::now() >= deadline) throw Error(text("the key \"{}\" was not set before the deadline", key), "store");
    }
    return values_.find(key)->second;
  }
  /// Amounts that other ranks add arrive with a delay.
  std::int64_t add(std::string_view key, std::int64_t amount) override {
    receive();
    if (amount != 0) send('+', key, std::to_string(amount));
    return counters_[std::string(key)] += amount;
  }

 private:
  static constexpr int kTag = 4711;

  void send(char what, std::string_view key, std::string_view value) {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      sent_.push_back(std::make_unique<std::string>(what + std::string(key) + '\0' + std::string(value)));
      requests_.emplace_back();
      MPI_Isend(sent_.back()->data(), static_cast<int>(sent_.back()->size()), MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
                &requests_.back());
    }
  }
  void receive() {
    int there = 0, bytes = 0;
    MPI_Status status;
    while (MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, &status) == MPI_SUCCESS && there) {
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      std::string heard(static_cast<std::size_t>(bytes), '\0');
      MPI_Recv(heard.data(), bytes, MPI_BYTE, status.MPI_SOURCE, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      const std::size_t end = heard.find('\0');
      const std::string key = heard.substr(1, end - 1), value = heard.substr(end + 1);
      if (heard[0] == '=') {
        values_.insert_or_assign(key, value);
      } else {
        counters_[key] += std::stoll(value);
      }
    }
  }

  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::int64_t, std::less<>> counters_;
  std::vector<std::unique_ptr<std::string>> sent_;
  std::vector<MPI_Request> requests_;
};

} // namespace triax::bench
