// SPDX-License-Identifier: Apache-2.0
#include "compare/turn_server.hpp"

#include <poll.h>

#include <algorithm>

#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::compare {

void TurnServer::read(Client& client) {
  while (const auto line = client.connection.read_line(Clock::now())) {
    client.sent = report::read_waiting_rank(*line);
    client.waits = true;
  }
}

bool TurnServer::poll(int timeout_ms) {
  std::vector<pollfd> polled = {{listener_.number(), POLLIN, 0}};
  for (const Client& client : clients_) polled.push_back({client.connection.number(), POLLIN, 0});
  ::poll(polled.data(), polled.size(), timeout_ms);
  while (auto connection = listener_.accept()) clients_.push_back({std::move(*connection), false, {}});
  for (Client& client : clients_) read(client);
  // A rank that has ended; the end of its process is noticed elsewhere.
  clients_.remove_if([](const Client& client) { return client.connection.is_closed(); });
  return std::ssize(clients_) == ranks_ && std::ranges::all_of(clients_, &Client::waits);
}

std::vector<report::WaitingRank> TurnServer::waiting() const {
  std::vector<report::WaitingRank> out;
  for (const Client& client : clients_) out.push_back(client.sent);
  std::ranges::sort(out, {}, &report::WaitingRank::rank);
  for (const report::WaitingRank& rank : out)
    if (rank.next_step != out.front().next_step)
      throw Error(text("rank {} waits for step {}, but rank {} for step {}", rank.rank, rank.next_step,
                       out.front().rank, out.front().next_step),
                  "comparison");
  return out;
}

void TurnServer::give(const report::Turn& turn) {
  for (Client& client : clients_) {
    client.waits = false;
    client.connection.write_line(report::to_line(turn));
  }
}

} // namespace triax::compare
