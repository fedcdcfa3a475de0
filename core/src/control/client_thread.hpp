// SPDX-License-Identifier: Apache-2.0
// Implementation of Client: its connection, and the thread that reads it, sends heartbeats, and ends a process that
// hangs.
//
// Threads: public functions: any; run(): one. Ownership: owns its connection; borrows the flag. Blocking: call() and
// leave() as documented; run() until quit().
//
// Lock order: the flag's mutex before this one, because the flag calls its listeners while it holds its mutex. So the
// thread sets the flag, and calls the functions of the request, without holding its own mutex.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "control/client.hpp"
#include "control/connection.hpp"
#include "os/socket.hpp"

namespace triax::control {

class ClientThread {
 public:
  ClientThread(const ClientRequest& request, JobAbort& flag);
  ~ClientThread();
  ClientThread(const ClientThread&) = delete;
  ClientThread& operator=(const ClientThread&) = delete;

  void run();
  void quit();

  /// Sends a request and waits for its answer. After the deadline, asks the server to cancel the request. Throws
  /// Error(reason, where) after an abort, and if the server refuses or does not answer.
  Message call(Message request, Deadline deadline, const std::string& where);
  /// Sends without waiting, also after an abort.
  void post(Message message);
  bool aborted() const;
  void abort(std::string_view why) noexcept;
  void send_position(double timeout_s) noexcept;
  /// Throws Error if the server did not confirm that everything arrived.
  void leave();

 private:
  enum class Leaving { no, asked, sent, done };
  using Lock = std::unique_lock<std::mutex>;

  void wait();
  void read();
  void take(Message& message);
  void handle_failure(const Message& failure);
  void relay(int rank, std::string reason);
  void beat(bool has_seen_failure);
  void send_asked_beat();
  void send_failure();
  void say_goodbye();
  void check_silence();
  void end_if_late();
  std::string position() const;
  Message failure_message() const;
  RankProgress progress() const;

  // Called with the mutex held.
  void send(const Message& message);
  bool mark_aborted(std::string_view why) noexcept;
  template <class Done>
  void await(Lock& lock, Deadline deadline, Done done);

  const ClientRequest request_;
  JobAbort& flag_;
  os::Wake wake_;

  mutable std::mutex mutex_; // protects the members below
  std::condition_variable changed_;
  Connection connection_;
  std::map<std::uint64_t, std::optional<Message>> calls_; // open requests by id, with their answers
  std::uint64_t last_id_ = 0;
  Leaving leaving_ = Leaving::no;
  bool quit_ = false;
  bool beat_asked_ = false;
  bool lost_ = false; // the server is lost, and everything it sent has been handled
  bool aborted_ = false;
  bool unsent_ = false; // this rank set the flag, and the server does not know it yet
  std::string why_;     // reason of the abort
  Clock::time_point aborted_at_{};

  // Used by the client's thread only.
  Clock::time_point round_, heard_, next_beat_;
  std::thread relaying_; // sets the flag
};

} // namespace triax::control
