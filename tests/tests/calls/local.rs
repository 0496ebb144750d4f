//! A local interface is a trait. It is implemented and called without a connection.

use std::sync::Arc;

use rtorb::SystemException;
use rtorb_tests::snapshots::interfaces::{
    Bottom, Cookie, Full, Hook, Interceptor, InterceptorInterceptError,
};

struct Counting;

impl Interceptor for Counting {
    fn intercept(
        &self,
        token: &Cookie,
        next: Option<&Arc<dyn Interceptor>>,
    ) -> Result<Option<Bottom>, InterceptorInterceptError> {
        let left = *token
            .downcast_ref::<u32>()
            .expect("the test passes a number");
        match next {
            Some(next) if left > 0 => next.intercept(&(Arc::new(left - 1) as Cookie), Some(next)),
            _ => Err(Full {
                limit: left,
                what: "interceptors".to_owned(),
            }
            .into()),
        }
    }

    fn all_hooks(&self) -> Result<Vec<Hook>, SystemException> {
        let inner: Option<Arc<dyn Interceptor>> = Some(Arc::new(Self));
        Ok(vec![
            Hook {
                inner,
                token: Arc::new(1u32),
                priority: 1
            };
            2
        ])
    }

    fn name(&self) -> Result<String, SystemException> {
        Ok("counting".to_owned())
    }
}

#[test]
fn a_local_interface_is_an_ordinary_trait() {
    let interceptor: Arc<dyn Interceptor> = Arc::new(Counting);
    let token: Cookie = Arc::new(3u32);
    let raised = interceptor
        .intercept(&token, Some(&interceptor))
        .unwrap_err();
    let full = Full {
        limit: 0,
        what: "interceptors".to_owned(),
    };
    assert_eq!(raised, InterceptorInterceptError::Full(full));
    assert_eq!(interceptor.name().unwrap(), "counting");
    let [first, second] = &interceptor.all_hooks().unwrap()[..] else {
        panic!("there are two")
    };
    assert!(Arc::ptr_eq(
        first.inner.as_ref().unwrap(),
        second.inner.as_ref().unwrap()
    ));
}
