//! From the wire to a capability and back: one table, one sequence of steps.

mod command;
pub(crate) mod errors;
mod files;
mod operation;
mod record;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use protocol::{Channel, ErrorCode, ErrorPayload, MessageType};
use tokio_util::sync::CancellationToken;

use crate::connection::{Incoming, Line, Slot};
use crate::control::wrong_channel;
use crate::session::DataConnection;

pub(crate) use operation::{Asks, Call, Details, details, elapsed_ms, encode_bounded, encode_error};
pub(crate) use record::Record;

type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;
type Serve = fn(Arc<DataConnection>, Arc<Line>, Slot, Incoming, CancellationToken) -> Serving;

/// One row for each request that a session serves.
const TABLE: &[(MessageType, Serve)] = &[
    (MessageType::FileRead, row::<files::Read>),
    (MessageType::FileWrite, row::<files::Write>),
    (MessageType::FileStat, row::<files::Stat>),
    (MessageType::FileList, row::<files::List>),
    (MessageType::FileDelete, row::<files::Delete>),
    (MessageType::FileMove, row::<files::Move>),
    (MessageType::ExecuteCommand, row::<command::Execute>),
];

fn row<O: operation::Operation>(
    connection: Arc<DataConnection>,
    line: Arc<Line>,
    slot: Slot,
    incoming: Incoming,
    stop: CancellationToken,
) -> Serving {
    Box::pin(operation::serve::<O>(connection, line, slot, incoming, stop))
}

/// Whether a request of this type is often over without having waited.
pub(crate) fn is_often_over_at_once(kind: MessageType) -> bool {
    kind == MessageType::FileStat
}

/// Serves an admitted request on a data connection.
pub(crate) fn serve_data(
    connection: Arc<DataConnection>,
    line: Arc<Line>,
    slot: Slot,
    incoming: Incoming,
    stop: CancellationToken,
) -> Serving {
    match TABLE.iter().find(|(kind, _)| *kind == incoming.kind) {
        Some((_, serve)) => serve(connection, line, slot, incoming, stop),
        None => Box::pin(async move {
            let error = match incoming.kind.request().map(|request| request.channel) {
                Some(Channel::Control) => wrong_channel(incoming.kind, "data"),
                Some(Channel::Data) | None => not_built(incoming.kind),
            };
            let session = &connection.session;
            session.machine.record_refused(Some(session.id.as_str()), &incoming.id, incoming.kind, &error);
            if let Some(response) = encode_error(&incoming.id, &error) {
                slot.answer(response).await;
            }
        }),
    }
}

/// A request of the contract that this version has no capability for.
fn not_built(kind: MessageType) -> ErrorPayload {
    ErrorPayload::new(
        ErrorCode::FeatureNotSupported,
        format!("this version of Deskhand does not serve {kind}; an update may"),
    )
    .with("feature", kind.as_str())
    .with("reason", "not built into this version")
}
