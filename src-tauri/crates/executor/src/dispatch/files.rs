//! The six file requests, on the session's jail.

use base64_simd::STANDARD as BASE64;
use jail::{DeleteOptions, Kind, ListOptions, ReadRange};
use protocol::{
    Ack, BASE64_CEILING_BYTES, Encoding, ErrorCode, ErrorPayload, FileContents, FileDelete, FileList,
    FileListEntry, FileListResponse, FileMove, FileRead, FileStat, FileStatResponse, FileWrite, MessageType,
    ReadFormat, TEXT_CEILING_BYTES,
};
use serde_json::json;
use serde_json::value::RawValue;

use super::errors::from_jail;
use super::operation::{ApprovedAction, Asks, Call, Details, Done, Operation, details};
use crate::consent::{ActionView, Capability, ProgramMatch};

/// `FILE_READ`
pub(crate) struct Read;
/// `FILE_WRITE`
pub(crate) struct Write;
/// `FILE_STAT`
pub(crate) struct Stat;
/// `FILE_LIST`
pub(crate) struct List;
/// `FILE_DELETE`
pub(crate) struct Delete;
/// `FILE_MOVE`
pub(crate) struct Move;

fn asks(capability: Capability, view: ActionView) -> Result<Asks, ErrorPayload> {
    Ok(Asks { capability, view, program: ProgramMatch::none() })
}

/// The request's own fields.
fn fields<T: serde::Serialize>(params: &T) -> Details {
    serde_json::to_value(params).map(details).unwrap_or_default()
}

/// What `FILE_READ` answers with.
#[derive(serde::Serialize)]
#[serde(untagged)]
pub(crate) enum Content {
    Text(String),
    /// As JSON already: base64 has nothing to escape, and looking for it byte by byte took longer than all else of a read.
    Base64(Box<RawValue>),
}

fn base64(bytes: &[u8]) -> serde_json::Result<Box<RawValue>> {
    let mut json = String::with_capacity(BASE64.encoded_length(bytes.len()) + 2);
    json.push('"');
    BASE64.encode_append(bytes, &mut json);
    json.push('"');
    RawValue::from_string(json)
}

impl Operation for Read {
    type Params = FileRead;
    type Response = FileContents<Content>;
    const KIND: MessageType = MessageType::FileRead;

    fn details(params: &FileRead, _: &Call) -> Details {
        details(json!({
            "path": params.path, "encoding": params.encoding, "offset": params.offset, "length": params.length,
        }))
    }

    fn asks(params: &FileRead, _: &Call) -> Result<Asks, ErrorPayload> {
        asks(Capability::Read, ActionView::new("Read a file").with("File", &params.path))
    }

    fn run(action: ApprovedAction<FileRead>, call: &Call) -> Done<FileContents<Content>> {
        let params = action.into_params();
        let as_bytes = params.format == ReadFormat::Bytes || params.encoding == Encoding::Base64;
        let ceiling = if as_bytes { BASE64_CEILING_BYTES } else { TEXT_CEILING_BYTES };
        let limit = call.limits().max_file_size_bytes.min(ceiling);
        let range = ReadRange { offset: params.offset, length: params.length.map(std::num::NonZeroU64::get) };
        let read = match call.session().root.read(&params.path, range, limit) {
            Ok(read) => read,
            Err(error) => return Err(from_jail(&error)).into(),
        };
        let size_bytes = read.bytes.len() as u64;
        let (content, encoding) = if as_bytes {
            match base64(&read.bytes) {
                Ok(content) => (Content::Base64(content), Encoding::Base64),
                Err(error) => {
                    let message = format!("the content could not be written as JSON: {error}");
                    return Err(ErrorPayload::new(ErrorCode::InternalError, message)).into();
                }
            }
        } else {
            let text = String::from_utf8(read.bytes)
                .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
            (Content::Text(text), Encoding::Utf8)
        };
        let contents = FileContents { content, encoding, size_bytes, truncated: read.truncated };
        Done { details: details(json!({"size_bytes_returned": size_bytes})), ..Ok(contents).into() }
    }
}

impl Operation for Write {
    type Params = FileWrite;
    type Response = Ack;
    const KIND: MessageType = MessageType::FileWrite;

    fn details(params: &FileWrite, _: &Call) -> Details {
        details(json!({
            "path": params.path, "encoding": params.encoding, "create_parents": params.create_parents,
            "size_bytes_written": 0,
        }))
    }

    fn asks(params: &FileWrite, _: &Call) -> Result<Asks, ErrorPayload> {
        let size = format!("{} characters of {}", params.content.len(), params.encoding.as_str());
        asks(
            Capability::Write,
            ActionView::new("Write a file").with("File", &params.path).with("Content", &size),
        )
    }

    fn run(action: ApprovedAction<FileWrite>, call: &Call) -> Done<Ack> {
        let params = action.into_params();
        let content = match params.encoding {
            Encoding::Utf8 => params.content.into_bytes(),
            Encoding::Base64 => match BASE64.decode_to_vec(params.content) {
                Ok(content) => content,
                Err(_) => {
                    let error = ErrorPayload::new(
                        ErrorCode::InternalError,
                        "field 'content' is not base64 (standard alphabet, padded)",
                    );
                    return Err(error.with("field", "content")).into();
                }
            },
        };
        let limit = call.limits().max_file_size_bytes;
        match call.session().root.write(&params.path, &content, params.create_parents, limit) {
            Ok(()) => {
                let written = details(json!({"size_bytes_written": content.len()}));
                Done { details: written, ..Ok(Ack::ok()).into() }
            }
            Err(error) => Err(from_jail(&error)).into(),
        }
    }
}

impl Operation for Stat {
    type Params = FileStat;
    type Response = FileStatResponse;
    const KIND: MessageType = MessageType::FileStat;

    fn details(params: &FileStat, _: &Call) -> Details {
        fields(params)
    }

    fn asks(params: &FileStat, _: &Call) -> Result<Asks, ErrorPayload> {
        asks(Capability::Read, ActionView::new("Look at a file's properties").with("File", &params.path))
    }

    const AT_ONCE: bool = true;

    fn at_once(params: &FileStat, call: &Call) -> Option<FileStatResponse> {
        call.session().root.stat_from_memory(&params.path, params.follow_symlinks).map(properties)
    }

    fn run(action: ApprovedAction<FileStat>, call: &Call) -> Done<FileStatResponse> {
        let params = action.into_params();
        let stat = call.session().root.stat(&params.path, params.follow_symlinks);
        stat.map(properties).map_err(|error| from_jail(&error)).into()
    }
}

fn properties(stat: jail::Stat) -> FileStatResponse {
    let Some(found) = stat.metadata else {
        return FileStatResponse { exists: false, path: stat.path, ..FileStatResponse::default() };
    };
    FileStatResponse {
        exists: true,
        is_file: Some(found.kind == Kind::File),
        is_dir: Some(found.kind == Kind::Directory),
        is_symlink: Some(found.kind == Kind::Symlink),
        size_bytes: Some(found.size),
        mtime: Some(found.mtime),
        ctime: Some(found.ctime),
        mode: Some(format!("{:04o}", found.mode)),
        owner_uid: found.owner_uid,
        owner_gid: found.owner_gid,
        mime_type: found.mime_type,
        path: stat.path,
    }
}

impl Operation for List {
    type Params = FileList;
    type Response = FileListResponse;
    const KIND: MessageType = MessageType::FileList;

    fn details(params: &FileList, _: &Call) -> Details {
        fields(params)
    }

    fn asks(params: &FileList, _: &Call) -> Result<Asks, ErrorPayload> {
        asks(Capability::Read, ActionView::new("List a folder").with("Folder", &params.path))
    }

    fn run(action: ApprovedAction<FileList>, call: &Call) -> Done<FileListResponse> {
        let params = action.into_params();
        let options = ListOptions {
            glob: params.glob,
            recursive: params.recursive,
            include_hidden: params.include_hidden,
            max_entries: usize::try_from(params.max_entries).unwrap_or(usize::MAX),
        };
        let listing = match call.session().root.list(&params.path, &options, &|| call.is_cancelled()) {
            Ok(listing) => listing,
            Err(error) => return Err(from_jail(&error)).into(),
        };
        let entry = |entry: jail::Entry| FileListEntry {
            is_file: entry.kind == Kind::File,
            is_dir: entry.kind == Kind::Directory,
            is_symlink: entry.kind == Kind::Symlink,
            name: entry.name,
            path: entry.path,
            size_bytes: entry.size,
            mtime: entry.mtime,
        };
        let entries: Vec<_> = listing.entries.into_iter().map(entry).collect();
        let returned = details(json!({"entries_returned": entries.len()}));
        Done { details: returned, ..Ok(FileListResponse { entries, truncated: listing.truncated }).into() }
    }
}

impl Operation for Delete {
    type Params = FileDelete;
    type Response = Ack;
    const KIND: MessageType = MessageType::FileDelete;

    fn details(params: &FileDelete, _: &Call) -> Details {
        fields(params)
    }

    fn asks(params: &FileDelete, call: &Call) -> Result<Asks, ErrorPayload> {
        let title =
            if call.session().machine.config().trash { "Move to the trash" } else { "Delete for good" };
        let all =
            if params.recursive { "with everything in it" } else { "a file, a link or an empty folder" };
        asks(Capability::Write, ActionView::new(title).with("What", &params.path).with("How", all))
    }

    fn run(action: ApprovedAction<FileDelete>, call: &Call) -> Done<Ack> {
        let params = action.into_params();
        let trash = call.session().machine.config().trash;
        let options = DeleteOptions { recursive: params.recursive, missing_ok: params.missing_ok, trash };
        let deleted = call.session().root.delete(&params.path, &options, &|| call.is_cancelled());
        deleted.map(|()| Ack::ok()).map_err(|e| from_jail(&e)).into()
    }
}

impl Operation for Move {
    type Params = FileMove;
    type Response = Ack;
    const KIND: MessageType = MessageType::FileMove;

    fn details(params: &FileMove, _: &Call) -> Details {
        fields(params)
    }

    fn asks(params: &FileMove, _: &Call) -> Result<Asks, ErrorPayload> {
        let over = if params.overwrite { "replacing what is there" } else { "only if nothing is there" };
        asks(
            Capability::Write,
            ActionView::new("Move").with("From", &params.src).with("To", &params.dst).with("How", over),
        )
    }

    fn run(action: ApprovedAction<FileMove>, call: &Call) -> Done<Ack> {
        let params = action.into_params();
        let root = &call.session().root;
        let moved = root.rename(&params.src, &params.dst, params.overwrite, &|| call.is_cancelled());
        moved.map(|()| Ack::ok()).map_err(|e| from_jail(&e)).into()
    }
}
