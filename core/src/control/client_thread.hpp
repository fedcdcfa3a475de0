// SPDX-License-Identifier: Apache-2.0
// The inside of a Client: its connection, and the thread that reads it, beats, and ends a process that hangs.
//
// Threads: the public functions from any; run() on one. Ownership: owns its connection; borrows flag. Blocking: call()
// and leave() as they say, run() until quit(). Errors: Error.
//
// Lock order: the flag's mutex before this one's, for the flag tells its listeners while it holds its own. So the
// flag is raised, and what the request brought is called, with no lock held.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "control/client.hpp"
#include "control/connection.hpp"
#include "control/socket.hpp"

namespace triax::control {

class ClientThread {
 public:
  ClientThread(const ClientRequest& request, AbortFlag& flag);
  ~ClientThread();
  ClientThread(const ClientThread&) = delete;
  ClientThread& operator=(const ClientThread&) = delete;

  void run();
  void quit();

  /// Sends a request and waits for its answer. Once the deadline has passed, the server is asked to forget it. Throws
  /// Error(reason, where) after an abort, and where the server refuses or is silent.
  Message call(Message request, Deadline deadline, const std::string& where);
  /// Sends, and does not wait; after an abort as well.
  void post(Message message);
  bool aborted() const;
  void abort(std::string_view why) noexcept;
  /// Throws Error if the server did not say that all has arrived.
  void leave();

 private:
  enum class Leaving { no, asked, said, done };
  using Lock = std::unique_lock<std::mutex>;

  void wait();
  void read();
  void take(Message& message);
  void hear(const Message& failure);
  void relay(int rank, std::string reason);
  void beat(bool knows);
  void tell_failure();
  void say_goodbye();
  void check_silence();
  void end_if_late();
  std::string place() const;
  Message given_up() const;
  RankProgress progress() const;

  // With the mutex held.
  void send(const Message& message);
  bool mark_aborted(std::string_view why) noexcept;
  template <class Done>
  void await(Lock& lock, Deadline deadline, Done done);

  const ClientRequest request_;
  AbortFlag& flag_;
  Wake wake_;

  mutable std::mutex mutex_; // of what follows
  std::condition_variable changed_;
  Connection connection_;
  std::map<std::uint64_t, std::optional<Message>> calls_; // by id, with their answers
  std::uint64_t last_id_ = 0;
  Leaving leaving_ = Leaving::no;
  bool quit_ = false;
  bool lost_ = false; // the server, and what it had sent has been taken
  bool aborted_ = false;
  bool untold_ = false; // the abort was this rank's own, and the server does not know yet
  std::string why_;     // of the abort
  Clock::time_point aborted_at_{};

  // Of the thread alone.
  Clock::time_point round_, heard_, next_beat_;
  std::thread relaying_; // raises the flag
};

} // namespace triax::control
