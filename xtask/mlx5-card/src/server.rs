//! The vfio-user server of one function: what QEMU asks for goes to the card.

use crate::card::Card;
use crate::front::pci;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_INFO_EVENTFD, VFIO_PCI_BAR0_REGION_INDEX, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_NUM_IRQS,
    VFIO_PCI_NUM_REGIONS, VFIO_REGION_INFO_FLAG_READ, VFIO_REGION_INFO_FLAG_WRITE, vfio_region_info,
};
use vfio_user::{DmaMapFlags, DmaUnmapFlags, IrqInfo, Server, ServerBackend, ServerRegion};

/// One function's socket and what is behind it.
pub struct FunctionServer {
    server: Server,
    backend: Backend,
}

struct Backend {
    function: usize,
    card: Arc<Card>,
}

impl FunctionServer {
    /// Listens at `socket` for function `function` of `card`. A socket of that name is replaced; any other file is left alone.
    pub fn listen(socket: &Path, function: usize, card: Arc<Card>) -> anyhow::Result<Self> {
        let vectors = card.vector_count(function);
        let regions = (0..VFIO_PCI_NUM_REGIONS)
            .map(|index| {
                let size = match index {
                    VFIO_PCI_BAR0_REGION_INDEX => pci::BAR0_SIZE,
                    VFIO_PCI_CONFIG_REGION_INDEX => pci::CONFIG_SIZE as u64,
                    _ => 0,
                };
                let flags = if size > 0 { VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE } else { 0 };
                let region_info =
                    vfio_region_info { argsz: size_of::<vfio_region_info>() as u32, index, size, flags, ..Default::default() };
                ServerRegion { region_info, sparse_areas: Vec::new(), mmap_fd: None }
            })
            .collect();
        let irqs = (0..VFIO_PCI_NUM_IRQS)
            .map(|index| IrqInfo { index, count: if index == VFIO_PCI_MSIX_IRQ_INDEX { vectors } else { 0 }, flags: VFIO_IRQ_INFO_EVENTFD })
            .collect();
        clear(socket)?;
        let server = Server::new(socket, true, irqs, regions)?;
        Ok(Self { server, backend: Backend { function, card } })
    }

    /// Serves one connection to its end.
    pub fn run(mut self) -> Result<(), vfio_user::Error> {
        self.server.run(&mut self.backend)
    }
}

/// Removes a socket that an earlier card has left at this path.
fn clear(socket: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(socket) {
        Ok(there) if there.file_type().is_socket() => std::fs::remove_file(socket),
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is something else than a socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

impl ServerBackend for Backend {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> io::Result<()> {
        data.fill(0);
        match region {
            VFIO_PCI_CONFIG_REGION_INDEX => self.card.with(self.function, |function, _| function.config.read(offset, data)),
            VFIO_PCI_BAR0_REGION_INDEX => self.card.with(self.function, |function, knobs| function.read_bar(offset, data, knobs)),
            _ => {}
        }
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        match region {
            VFIO_PCI_CONFIG_REGION_INDEX => self.card.with(self.function, |function, _| function.config.write(offset, data)),
            VFIO_PCI_BAR0_REGION_INDEX => self.card.write_bar(self.function, offset, data),
            _ => {}
        }
        Ok(())
    }

    fn dma_map(&mut self, _: DmaMapFlags, offset: u64, address: u64, size: u64, file: Option<File>) -> io::Result<()> {
        // What has no file (the BARs of other devices) cannot be reached, and needs not be.
        let Some(file) = file else { return Ok(()) };
        self.card.with(self.function, |function, _| function.engine.memory.map(address, file, offset, size)).map_err(io::Error::other)
    }

    fn dma_unmap(&mut self, _: DmaUnmapFlags, address: u64, size: u64) -> io::Result<()> {
        self.card.with(self.function, |function, _| function.engine.memory.unmap(address, size));
        Ok(())
    }

    fn reset(&mut self) -> io::Result<()> {
        self.card.with(self.function, |function, _| function.reset());
        Ok(())
    }

    fn set_irqs(&mut self, index: u32, _: u32, start: u32, count: u32, ends: Vec<File>) -> io::Result<()> {
        if index == VFIO_PCI_MSIX_IRQ_INDEX {
            self.card.with(self.function, |function, _| {
                if count == 0 {
                    function.vectors.clear();
                }
                function.vectors.extend((start..).zip(ends));
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.sock");
        clear(&path).unwrap();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        clear(&path).unwrap();
        assert!(!path.exists());
        std::fs::write(&path, "precious").unwrap();
        assert_eq!(clear(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }
}
